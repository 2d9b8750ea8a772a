"""Label Studio tasks as its own SDK checks them against the labelling interface."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.errors import DeixisError
from deixis.export import labelstudio
from deixis.export.things import Answer, labels_in, things_of
from tests.export.answers import CLIP, DOG, EVIL, PHRASES, caption, captions


def interface(answers: list[Answer]) -> Any:
    tools = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    return tools.LabelInterface(labelstudio.config(labels_in(answers, doubtful=True)))


def test_the_sdk_accepts_tasks_and_predictions() -> None:
    answers: list[Answer] = [DOG, PHRASES]
    checker = interface(answers)
    for task in labelstudio.labels(answers):
        assert checker.validate_task({"data": task["data"]})
        assert checker.validate_prediction(task["predictions"][0], return_errors=True) == []
    wrong = json.loads(json.dumps(labelstudio.tasks([DOG])[0]["predictions"][0]))
    wrong["result"][0]["value"]["rectanglelabels"] = ["unicorn"]
    assert not checker.validate_prediction(wrong), "the check can fail"


def test_a_hand_worked_task() -> None:
    (task,) = labelstudio.tasks([DOG])
    assert task["data"]["image"] == "/data/local-files/?d=photos/dog.jpg"
    assert task["data"]["sentence"] == "two dogs chase a ball"
    box, phrase = task["predictions"][0]["result"][:2]
    assert box["value"] == {
        "x": 10, "y": 10, "width": 50, "height": 80, "rotation": 0, "rectanglelabels": ["dog"],
    }  # fmt: skip
    assert (box["original_width"], box["original_height"]) == (200, 100)
    assert phrase["id"] == box["id"]
    assert phrase["value"]["text"] == ["dogs"]


def test_review_order_and_scores() -> None:
    tasks = labelstudio.labels([DOG, PHRASES])
    assert [task["data"]["image_id"] for task in tasks] == ["photos/cat.png", "photos/dog.jpg"]
    assert [task["predictions"][0]["score"] for task in tasks] == [0.0, 0.5]


def test_names_are_quoted_and_addresses_kept() -> None:
    spaced = caption("a b&c?.jpg", "dog", {"dog": (0, 0, 1, 1)})
    linked = caption("s3://bucket/a.jpg", "dog", {"dog": (0, 0, 1, 1)})
    rooted = caption("/photos/a.jpg", "dog", {"dog": (0, 0, 1, 1)})
    one, two, three = labelstudio.tasks([spaced, linked, rooted], prefix="https://host/")
    assert three["data"]["image"] == "https://host/photos/a.jpg"
    assert one["data"]["image"] == "https://host/a%20b%26c%3F.jpg"
    assert two["data"]["image"] == "s3://bucket/a.jpg"
    with pytest.raises(DeixisError, match="clip"):
        labelstudio.tasks([CLIP])


def test_the_interface_is_xml_whatever_the_labels() -> None:
    names = [EVIL, '"', "a&b", "'"]
    found = ElementTree.fromstring(labelstudio.config(names)).iter("Label")
    assert [label.get("value") for label in found] == names


@settings(max_examples=30)
@given(st.lists(captions(), min_size=1, max_size=3))
def test_boxes_come_back_from_percent(answers: list[Answer]) -> None:
    for answer, task in zip(answers, labelstudio.tasks(answers), strict=True):
        rows = [row for row in task["predictions"][0]["result"] if row["type"] == "rectanglelabels"]
        things = things_of(answer, doubtful=True)
        assert len(rows) == len(things)
        for row, thing in zip(rows, things, strict=True):
            value = row["value"]
            width, height = answer.size
            x, y = value["x"] * width / 100, value["y"] * height / 100
            back = (x, y, x + value["width"] * width / 100, y + value["height"] * height / 100)
            assert back == pytest.approx(thing.box, abs=1e-6)
