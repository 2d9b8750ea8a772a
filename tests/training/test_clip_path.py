"""The whole path of a clip as a user walks it: film photos, find regions, train, measure over frames, caption."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deixis.cli.main import main
from deixis.models.checkpoint import load_config
from deixis.models.names import find_model
from deixis.types import GroundedCaption


def call(*arguments: object) -> None:
    code: object = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code
    assert not code, arguments


@pytest.mark.recipe
def test_film_extract_train_evaluate_and_caption(
    flickr8k: Path | None, scenes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clips, store, run, scores = tmp_path / "clips", tmp_path / "store", tmp_path / "run", tmp_path / "scores"
    photos = flickr8k or scenes
    film = ["--split", "train", "--count", 4, "--split", "val", "--count", 2, "--threshold", 1, "--seconds", 1]
    call("data", "clips", photos, "-o", clips, *film, "--captions", 2)
    call("regions", "extract", clips, "-o", store, "--max-regions", 5, "--processes", 1)
    where = [f"data.dataset={clips}", f"data.store={store}", "data.train=train", "data.validation=val"]
    where.append("data.feature_width=null")  # the published features have 2048 numbers, these fewer
    small = [f"model.{part}=32" for part in ("width", "region_width", "decoder.word_width", "attention.width")]
    small += ["data.regions=5", "data.min_count=1", "stages.words.batch=4", "log_every=1"]
    small += [f"model.{part}=0" for part in ("encoder.dropout", "decoder.word_dropout", "decoder.output_dropout")]
    often = [
        "stages.words.epochs=20",
        "validation.every=20",
        "stages.words.optimizer.lr=1e-2",
        "stages.words.clip.at=5",
        "stages.words.schedule={kind: constant}",
    ]
    call("train", "captioning/video", *where, *small, *often, "-o", run, "--threads", 1)
    losses = [
        line["loss"]
        for text in (run / "metrics.jsonl").read_text().splitlines()
        if "loss" in (line := json.loads(text))
    ]
    assert losses[-1] < 0.9 * losses[0], "it learns"
    assert load_config(find_model(str(run))).extractor["frames"] == 10, "and remembers that it saw clips"
    call("evaluate", run, clips, "--split", "val", "--store", store, "--replicates", 10, "-o", scores)
    captions = [GroundedCaption.from_json(json.loads(t)) for t in (scores / "captions.jsonl").read_text().splitlines()]
    assert {caption.segment for caption in captions} == {(0.0, 1.0), (1.0, 2.0)}
    assert all(len(caption.frame_times) == 10 for caption in captions)
    assert "clips" in (scores / "scores.json").read_text(), "scored by the rules for clips"
    capsys.readouterr()
    clip = next((clips / "videos").iterdir())
    call("video", clip, "--model", run, "--every", "1s", "--frames", 4, "--json")
    answers = [GroundedCaption.from_json(json.loads(line)) for line in capsys.readouterr().out.splitlines()]
    assert [answer.segment for answer in answers] == [(0.0, 1.0), (1.0, 2.0)]
    assert all(word.frames == (0, 1, 2, 3) for answer in answers for word in answer.words if word.groundable)
