"""Referring expressions: ReferItGame's files and RefCOCO in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deixis.data import open_dataset
from deixis.errors import BadFileError


def test_referit_game(referit: Path) -> None:
    dataset = open_dataset(referit)
    assert dataset.format == "referit"
    assert dataset.splits == ("test",)
    example = dataset["103"]
    assert example.split == "test"
    assert example.size == (200, 100)
    assert [caption.text for caption in example.captions] == ["the dog on the left", "sky", "nothing there"]
    dog = example.captions[0]
    (phrase,) = dog.phrases
    assert dog.phrase_text(phrase) == dog.text
    assert phrase.boxes == ((20.0, 10.0, 60.0, 50.0),)
    assert example.captions[2].phrases[0].boxes == ()
    problems = dataset.problems
    assert {kind: problems.count(kind) for kind in problems.kinds} == {
        "broken expression": 1,
        "expression without a box": 1,
    }


def test_queries_in_json_come_first(referit: Path) -> None:
    (referit / "metadata" / "referit_query_dict.json").write_text(json.dumps({"103_1": ["left dog", "puppy", ""]}))
    dataset = open_dataset(referit)
    assert [caption.text for caption in dataset["103"].captions] == ["left dog", "puppy"]
    assert dataset.problems.count("empty caption") == 1


def test_boxes_without_expressions_are_an_error(referit: Path) -> None:
    (referit / "ReferitData" / "RealGames.txt").unlink()
    with pytest.raises(BadFileError, match=r"RealGames\.txt"):
        open_dataset(referit).ids()


def test_refcoco(tmp_path: Path) -> None:
    instances = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 100, "height": 50}],
        "annotations": [{"id": 9, "image_id": 1, "bbox": [10, 10, 20, 30]}],
    }
    refs = [
        {"image_id": 1, "ann_id": 9, "split": "testA", "sentences": [{"raw": "man in red"}, {"sent": "him"}]},
        {"image_id": 2, "ann_id": 9, "split": "testA", "sentences": []},
    ]
    (tmp_path / "instances.json").write_text(json.dumps(instances))
    (tmp_path / "refs.json").write_text(json.dumps(refs))
    dataset = open_dataset(tmp_path)
    assert dataset.splits == ("testA",)
    (example,) = dataset.examples()
    assert [caption.text for caption in example.captions] == ["man in red", "him"]
    assert example.captions[1].phrases[0].boxes == ((10.0, 10.0, 30.0, 40.0),)
    assert dataset.problems.count("id in a split list that does not exist") == 1
