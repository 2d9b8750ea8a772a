"""Scoring against real data sets: captions with boxes, phrases, and what is written from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from deixis.data.open import open_dataset
from deixis.errors import DeixisError
from deixis.metrics.scoring import ScoreOptions, score_files
from deixis.regions.store.writer import write_store
from deixis.types import Example, GroundedCaption, GroundedPhrase, GroundedPhrases, GroundedWord, Regions

FEW = 12


@pytest.fixture(scope="module")
def few(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Example]]:
    """The first photos of the real validation split, as a data set of their own."""
    source = shared / "data" / "flickr8k-entities"
    ids = open_dataset(source).ids("val")[:FEW]
    folder = tmp_path_factory.mktemp("entities")
    for part, suffix in (("Annotations", "xml"), ("Sentences", "txt")):
        (folder / part).mkdir()
        for name in ids:
            (folder / part / f"{name}.{suffix}").write_bytes((source / part / f"{name}.{suffix}").read_bytes())
    (folder / "val.txt").write_text("\n".join(ids) + "\n")
    return folder, list(open_dataset(folder).examples("val"))


def write(path: Path, results: list[Any]) -> Path:
    path.write_text("".join(json.dumps(result.to_json()) + "\n" for result in results))
    return path


def size_of(example: Example) -> tuple[int, int]:
    assert example.size is not None
    return example.size


def grounded(example: Example, *, shrink: int = 1) -> GroundedCaption:
    """The first reference, each word with the first box of its phrase, in an image ``shrink`` times smaller."""
    caption = example.captions[0]
    words = []
    for at, token in enumerate(caption.tokens):
        phrase = next((p for p in caption.phrases if p.first <= at < p.last and p.boxes), None)
        boxes = tuple(tuple(v / shrink for v in box) for box in phrase.boxes[:1]) if phrase else ()
        words.append(GroundedWord(token.text, token.start, token.end, boxes, (0,) * len(boxes)))  # type: ignore[arg-type]
    width, height = size_of(example)
    return GroundedCaption(example.id, (width // shrink, height // shrink), caption.text, tuple(words), model="human")


def test_a_person_who_repeats_the_first_reference(
    few: tuple[Path, list[Example]], tmp_path: Path, shared: Path
) -> None:
    folder, examples = few
    classes = shared / "data" / "class-lists" / "flickr30k_classes_480.txt"
    options = ScoreOptions(splits=("val",), classes=classes, replicates=20)
    scored = score_files(write(tmp_path / "c.jsonl", [grounded(e) for e in examples]), folder, options)
    captions, grounding = scored.report.sections
    assert captions.scores["BLEU-4"] == pytest.approx(1)
    assert grounding.scores["F1_loc_per_sent"] > 0.9  # right words point at right boxes
    assert 0.3 < grounding.scores["recall_all_per_sent"] < 0.9  # the other references name more
    assert grounding.items == FEW
    assert scored.report.model == "human"

    # written as a submission and scored again, nothing changes
    from deixis.metrics.grounding.pairs import submission_json

    again = tmp_path / "submission.json"
    again.write_text(json.dumps(submission_json(scored.items, clips=scored.clips)))
    other = score_files(again, folder, options).report.sections[0]
    assert other.scores == pytest.approx(grounding.scores)


def test_boxes_of_another_size_are_scaled(few: tuple[Path, list[Example]], tmp_path: Path, shared: Path) -> None:
    folder, examples = few
    even = [e for e in examples if all(side % 4 == 0 for side in size_of(e))][:3]
    assert even
    classes = shared / "data" / "class-lists" / "flickr30k_classes_480.txt"
    options = ScoreOptions(classes=classes, replicates=0, partial=True)
    whole = score_files(write(tmp_path / "1.jsonl", [grounded(e) for e in even]), folder, options)
    small = score_files(write(tmp_path / "4.jsonl", [grounded(e, shrink=4) for e in even]), folder, options)
    assert small.report.sections[1].scores == pytest.approx(whole.report.sections[1].scores)


def phrases_of(example: Example, caption: int) -> GroundedPhrases:
    sentence = example.captions[caption]
    found = []
    for phrase in sentence.phrases:
        start, end = sentence.phrase_span(phrase)
        found.append(
            GroundedPhrase(
                sentence.phrase_text(phrase), phrase.boxes[:1], (0,) * len(phrase.boxes[:1]), 1.0, True, start, end
            )
        )
    return GroundedPhrases(example.id, size_of(example), tuple(found), sentence.text, "human")


def test_phrases_with_their_own_first_box(few: tuple[Path, list[Example]], tmp_path: Path) -> None:
    folder, examples = few
    results = [phrases_of(example, at) for example in examples for at in range(len(example.captions))]
    report = score_files(write(tmp_path / "p.jsonl", results), folder, ScoreOptions(replicates=20)).report
    any_box, merged = report.sections
    boxed = sum(bool(p.boxes) for e in examples for c in e.captions for p in c.phrases)
    assert any_box.items == boxed
    assert any_box.scores["R@1"] == 1
    assert merged.scores["R@1"] < 1  # one box of several is not their union
    assert {row[0] for table in any_box.breakdowns for row in table.rows} >= {"people", "one", "several"}
    with pytest.raises(DeixisError, match="duplicate"):
        score_files(write(tmp_path / "twice.jsonl", [*results, results[3]]), folder, ScoreOptions())
    with pytest.raises(DeixisError, match=r"phrases have no prediction"):
        score_files(write(tmp_path / "less.jsonl", results[1:]), folder, ScoreOptions())


def test_our_json_with_an_error_in_it(few: tuple[Path, list[Example]], tmp_path: Path) -> None:
    folder, examples = few
    lines = [json.dumps(grounded(example).to_json()) for example in examples]
    wrong = json.loads(lines[4])
    wrong["words"][1]["boxes"] = [[9, 9, 1, 1]]
    wrong["words"][1]["frames"] = [0]
    path = tmp_path / "wrong.jsonl"
    path.write_text("\n".join([*lines[:4], json.dumps(wrong), *lines[5:]]))
    with pytest.raises(DeixisError, match=rf"wrong.jsonl, line 5: words\[1\].boxes .*\[9, 9, 1, 1\].*{examples[4].id}"):
        score_files(path, folder)


def test_activitynet_folder_uses_the_published_boxes(tmp_path: Path) -> None:
    segment = {
        "tokens": ["A", "man"],
        "timestamps": [0, 3],
        "process_idx": [[1]],
        "process_clss": [["man"]],
        "process_bnd_box": [[0, 0, 9, 9]],
        "frame_ind": [3],
    }
    reference = {"vocab": ["man"], "annotations": {"v_1": {"segments": {"0": segment}}}}
    (tmp_path / "anet_entities_cleaned_class_thresh50_trainval.json").write_text(json.dumps(reference))
    (tmp_path / "split_ids_anet_entities.json").write_text(json.dumps({"validation": ["v_1"], "training": []}))
    word = GroundedWord("men", 0, 3, tuple((0.0, 0.0, 9.0, 9.0) for _ in range(2)), (2, 3))
    caption = GroundedCaption("v_1_segment_00", (100, 100), "men", (word,), segment=(0, 3))
    lemmas = tmp_path / "lemmas.json"
    lemmas.write_text('{"men": "man"}')
    options = ScoreOptions(splits=("val",), lemmas=lemmas, replicates=0)
    scored = score_files(write(tmp_path / "c.jsonl", [caption]), tmp_path, options)
    assert scored.report.sections[1].scores["F1_all"] == 1
    assert scored.clips
    assert [item.id for item in scored.items] == ["v_1/0"]


def test_referring_expressions(tmp_path: Path) -> None:
    folder = tmp_path / "referit"
    folder.mkdir()
    (folder / "referit_imcrop_bbox_dict.json").write_text(json.dumps({"7_1": [0, 0, 10, 10], "7_2": [50, 50, 90, 90]}))
    (folder / "referit_query_dict.json").write_text(json.dumps({"7_1": ["sky", "the blue part"], "7_2": ["tree"]}))
    (folder / "referit_imsize_dict.json").write_text(json.dumps({"7": [100, 100]}))
    found = tmp_path / "found.jsonl"
    records = [("sky", [0, 0, 9, 9]), ("the blue part", [50, 50, 90, 90]), ("tree", [50, 50, 90, 90])]
    found.write_text("".join(json.dumps({"image": 7, "phrase": p, "boxes": [b]}) + "\n" for p, b in records))
    report = score_files(found, folder, ScoreOptions(replicates=0)).report
    assert [section.scores["R@1"] for section in report.sections] == [pytest.approx(2 / 3)] * 2


def test_dense_captions(tmp_path: Path) -> None:
    reference = {"v_1": {"duration": 9, "timestamps": [[0, 4], [5, 9]], "sentences": ["a man runs", "he falls down"]}}
    events = [{"sentence": "a man runs", "timestamp": [0, 4]}, {"sentence": "he falls down", "timestamp": [5, 9]}]
    (tmp_path / "r.json").write_text(json.dumps(reference))
    (tmp_path / "s.json").write_text(json.dumps({"results": {"v_1": events}}))
    (section,) = score_files(tmp_path / "s.json", tmp_path / "r.json", ScoreOptions(replicates=20)).report.sections
    assert section.scores["ROUGE-L"] == pytest.approx(1)
    assert "tIoU" in section.protocol


def test_the_bound_of_a_region_store(tmp_path: Path) -> None:
    regions = Regions(
        boxes=torch.tensor([[0.0, 0.0, 9.0, 9.0], [0.0, 0.0, 100.0, 100.0]]),
        features=torch.zeros(2, 4),
        objectness=torch.ones(2),
        size=(100, 100),
        fingerprint="made:1",
    )
    write_store(tmp_path / "store", [("1", regions)], ["1"], "made:1", {"max_regions": 1})
    phrases = [
        {"image": "1", "phrase": "a hat", "boxes": [[0, 0, 9, 9]]},
        {"image": "1", "phrase": "it", "boxes": [[50, 50, 60, 60]]},
    ]
    for name in ("reference", "found"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in phrases))
    options = ScoreOptions(proposals=tmp_path / "store", replicates=0)
    report = score_files(tmp_path / "found.jsonl", tmp_path / "reference.jsonl", options).report
    assert [section.scores["bound"] for section in report.sections] == [0.5, 0.5]
    assert report.region_source == "made:1"
