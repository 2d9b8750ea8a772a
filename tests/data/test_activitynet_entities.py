"""ActivityNet-Entities: segments, frames, boxes, classes, splits; with and without clips."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from deixis.data import BadExampleError, open_dataset
from deixis.data.activitynet_entities import ActivityNetEntities
from deixis.data.clips import write_clip
from deixis.types import ClipSegment

FILE = "anet_entities_cleaned_class_thresh50_trainval.json"


def change(root: Path, **values: Any) -> None:
    data = json.loads((root / FILE).read_text())
    data["annotations"]["v_a"]["segments"]["0"] |= values
    (root / FILE).write_text(json.dumps(data))


def test_words_with_boxes_on_frames(anet: Path) -> None:
    dataset = open_dataset(anet)
    assert isinstance(dataset, ActivityNetEntities)
    assert dataset.classes == ("man", "he", "ball")
    assert dataset.splits == ("train",)
    assert dataset.ids("train") == ("v_a_segment_00",)
    example = dataset["v_a_segment_00"]
    assert example.source == ClipSegment(None, 1.0, 11.0, 10)
    assert example.size == (720, 400)
    (caption,) = example.captions
    assert caption.text == "A man throws the ball while he runs"
    man, ball, he = caption.phrases
    assert [caption.phrase_text(p) for p in (man, ball, he)] == ["man", "ball", "he"]
    assert [p.label for p in (man, ball, he)] == ["man", "ball", "he"]
    assert man.boxes == he.boxes == ((100.0, 50.0, 300.0, 350.0), (120.0, 60.0, 310.0, 350.0))
    assert man.frames == (0, 7)
    assert ball.boxes == ((400.0, 10.0, 720.0, 60.0),)
    assert [(thing.label, thing.frame) for thing in example.objects] == [("man", 0), ("man", 7), ("ball", 7)]
    problems = dataset.problems
    assert {kind: problems.count(kind) for kind in problems.kinds} == {
        "id in a split list that does not exist": 1,
        "box outside the image": 1,
    }


def test_boxes_follow_the_size_of_the_clip(anet: Path) -> None:
    (anet / "videos").mkdir()
    write_clip(anet / "videos" / "v_a.mp4", [Image.new("RGB", (360, 200))] * 5, 5)
    example = open_dataset(anet)["v_a_segment_00"]
    assert isinstance(example.source, ClipSegment)
    assert example.source.path == anet / "videos" / "v_a.mp4"
    assert example.size == (360, 200)
    assert example.captions[0].phrases[0].boxes[0] == (50.0, 25.0, 150.0, 175.0)


def test_without_a_size_720_wide_is_assumed_once_there_is_a_clip(anet: Path) -> None:
    data = json.loads((anet / FILE).read_text())
    del data["annotations"]["v_a"]["rwidth"]
    (anet / FILE).write_text(json.dumps(data))
    assert open_dataset(anet)["v_a_segment_00"].size is None
    (anet / "videos").mkdir()
    write_clip(anet / "videos" / "v_a.mp4", [Image.new("RGB", (360, 200))] * 5, 5)
    assert open_dataset(anet)["v_a_segment_00"].captions[0].phrases[0].boxes[0] == (50.0, 25.0, 150.0, 175.0)


def test_sizes_from_the_uncleaned_file(anet: Path) -> None:
    data = json.loads((anet / FILE).read_text())
    del data["annotations"]["v_a"]["rheight"]
    (anet / FILE).write_text(json.dumps(data))
    sizes = {"database": {"v_a": {"rwidth": 720, "rheight": 300, "segments": {}}}}
    (anet / "anet_entities_trainval.json").write_text(json.dumps(sizes))
    assert open_dataset(anet)["v_a_segment_00"].size == (720, 300)


def test_what_can_be_wrong(anet: Path) -> None:
    change(anet, timestamps=[11.0, 1.0], frame_ind=[0, 12, 7], process_idx=[[1, 60], [1], [4]])
    (anet / "videos").mkdir()
    (anet / "videos" / "v_b.mp4").write_text("no clip")
    dataset = open_dataset(anet)
    example = dataset["v_a_segment_00"]
    assert isinstance(example.source, ClipSegment)
    assert (example.source.start, example.source.end) == (1.0, 11.0)
    for kind in (
        "segment that ends before it starts",
        "box on a frame outside the segment",
        "object word outside the sentence",
        "missing clip",
    ):
        assert dataset.problems.count(kind) == 1, kind


@pytest.mark.parametrize(
    "values",
    [{"timestamps": [0]}, {"timestamps": ["a", 1]}, {"tokens": None}, {"frame_ind": [1]}, {"process_idx": 5}],
)
def test_broken_segments_name_their_place(anet: Path, values: dict[str, Any]) -> None:
    change(anet, **values)
    with pytest.raises(BadExampleError, match=r"trainval\.json: annotations\['v_a'\]\.segments\['0'\]"):
        open_dataset(anet)["v_a_segment_00"]


def test_the_real_skeletons(shared: Path) -> None:
    dataset = open_dataset(shared / "data" / "activitynet-entities")
    assert isinstance(dataset, ActivityNetEntities)
    assert dataset.splits == ("test", "hidden_test")
    assert len(dataset.classes) == 431
    assert [len(dataset.ids(split)) for split in dataset.splits] == [8731, 4955]
    examples = list(dataset.examples("test"))
    assert len(examples) == 8731
    listed = set(dataset.classes)
    labels = [p.label for example in examples for caption in example.captions for p in caption.phrases]
    assert np.mean([label in listed for label in labels]) == 1.0
    assert len(dataset.problems) == 0
