"""``docs/your-own-data.md`` from start to end, with 120 photos: every command as it stands there, only fewer epochs."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from deixis.cli.main import main
from deixis.data.open import open_dataset
from deixis.models.names import SHIPPED
from deixis.types import ImageFile

COUNT = 120


@pytest.fixture
def folder(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Photos with a file of captions, and no splits."""
    kitchen = tmp_path / "kitchen"
    kitchen.mkdir()
    data = open_dataset(shared / "data" / "flickr8k-entities")
    rows = [("image", "caption")]
    for id in data.ids("train")[:COUNT]:
        example = data[id]
        assert isinstance(example.source, ImageFile)
        shutil.copy(example.source.path, kitchen)
        rows += [(example.source.path.name, caption.text) for caption in example.captions]
    with (kitchen / "captions.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    monkeypatch.chdir(tmp_path)
    return kitchen


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """Return what a command that succeeds prints, and what it says on the side."""
    code: object = 0
    try:
        main(list(arguments))
    except SystemExit as left:
        code = left.code or 0
    told = capsys.readouterr()
    assert code == 0, f"{arguments}: {told.err}"
    return told.out, told.err


@pytest.mark.recipe
def test_the_page_can_be_walked(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown, _ = call(capsys, "data", "info", "kitchen")
    data = open_dataset(folder)
    test = len(data.ids("test"))
    assert "There are no splits" in shown
    assert sum(len(data.ids(split)) for split in ("train", "val", "test")) == COUNT
    assert test > 1
    call(capsys, "train", "grounding/own", "data.dataset=kitchen", "-o", "runs/grounder", "--threads", "1")
    teacher = "stages.tune.objectives.distillation.teacher=runs/grounder"
    call(capsys, "train", "captioning/own", "data.dataset=kitchen", teacher, "stages.tune.epochs=1",
         "-o", "runs/captioner", "--threads", "1")  # fmt: skip
    call(capsys, "calibrate", "runs/grounder", "kitchen")
    _, warned = call(capsys, "bundle", "runs/captioner", "runs/grounder", "-o", "mine", "--method", "grounder",
                     "--choice", "0.2", "--calibrate", "kitchen")  # fmt: skip
    card, lite = (json.loads((place / "bundle.json").read_text()) for place in (tmp_path / "mine", SHIPPED))
    if "too few to fit" in warned:
        assert "the fit of lite, which the grounder started from, is taken over" in warned
        assert card["presence"] == lite["presence"]
    else:
        assert card["presence"] not in (None, lite["presence"])
    for model in ("lite", "mine"):
        call(capsys, "evaluate", model, "kitchen", "-o", f"eval/{model}", "--replicates", "20")
    reports = [json.loads((tmp_path / "eval" / name / "scores.json").read_text()) for name in ("lite", "mine")]
    assert {report["split"] for report in reports} == {"test"}
    assert any(f"the {test} images drawn as test" in note for note in reports[0]["notes"])
    compared, _ = call(capsys, "compare", "eval/lite", "eval/mine")
    assert f"split: test, {test} photos" in compared
    call(capsys, "average", "lite", "runs/captioner", "-o", "both")
    call(capsys, "average", "lite", "runs/grounder", "-o", "both-grounders")
    for model in ("mine", "both"):
        photo = next(path for path in sorted(folder.iterdir()) if path.name != "captions.csv")
        asked = ("caption", str(photo), "--model", model, "--json", *(("--check",) if model == "mine" else ()))
        assert json.loads(call(capsys, *asked)[0])["text"]
    call(capsys, "label", "kitchen", "--model", "mine", "-o", "labels.json", "--format", "labelstudio")
    assert json.loads((tmp_path / "labels.json").read_text())
    found, _ = call(capsys, "search", "kitchen", "a dog", "--model", "mine", "--top", "3", "--json")
    assert len(json.loads(found)["found"]) == 3
