"""The whole loop by its commands: label, correct, read back, train, label again, better."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import deixis
from deixis.cli.main import app
from deixis.geometry import iou
from deixis.grounding.base import WordGrounder
from deixis.models.names import load as load_part
from deixis.types import Box

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"


def call(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def overlap(one: Box, other: Box) -> float:
    return float(iou(np.array([one]), np.array([other]))[0, 0])


def corners(note: dict[str, Any]) -> Box:
    x, y, width, height = note["bbox"]
    return x, y, x + width, y + height


def notes_of(data: dict[str, Any], name: str) -> list[dict[str, Any]]:
    (number,) = (image["id"] for image in data["images"] if image["file_name"] == name)
    return [note for note in data["annotations"] if note["image_id"] == number]


@pytest.mark.recipe
def test_label_correct_train_and_label_again(tmp_path: Path) -> None:
    album = tmp_path / "photos"
    album.mkdir()
    for name in ("coffee.jpg", "chelsea.jpg", "astronaut.jpg"):
        shutil.copy(PHOTOS / name, album / name)
    draft, corrected = tmp_path / "draft.json", tmp_path / "corrected.json"
    call("label", album, "--phrases", "plate", "--boxes", "1", "-o", draft)
    data = json.loads(draft.read_text())

    # The person says: that is not a plate, this other thing is. It is one of the regions, so it can be learnt.
    regions = deixis.load().regions([album / "coffee.jpg"])[0]
    drawn = notes_of(data, "coffee.jpg")
    assert len(drawn) == 1, "the premise: lite finds one plate"
    before = corners(drawn[0])
    other = next(box for box in map(tuple, regions.boxes.tolist()) if overlap(before, box) < 0.1 and large(box))
    x1, y1, x2, y2 = other
    data["annotations"] = [drawn[0] | {"bbox": [x1, y1, x2 - x1, y2 - y1], "trusted": True}]
    for image in data["images"]:
        image["reviewed"] = image["file_name"] == "coffee.jpg"
    corrected.write_text(json.dumps(data))

    train_on = album / "corrected.jsonl"
    facts = json.loads(call("corrections", corrected, "--draft", draft, "--photos", album, "-o", train_on, "--json"))
    assert facts["unreviewed"] == 2
    assert (facts["training_photos"], facts["changes"]["deleted"], facts["changes"]["added"]) == (1, 1, 1)
    said = call("corrections", corrected, "--draft", draft, "--photos", album)
    assert "1 of 1 photos changed: 0 boxes kept, 0 moved, 0 relabelled, 1 deleted, 1 added" in said

    run = tmp_path / "run"
    call("train", "grounding/own:corrected", f"data.dataset={train_on}", "data.train=all", "stages.boxes.epochs=40",
         "-o", run, "--threads", "1")  # fmt: skip
    config = json.loads(next(run.rglob("config.json")).read_text())
    assert config["recipe"]["data"]["supervision"] is True, "a model that saw human boxes says so"
    learnt, shipped = (load_part(name, part="grounder").model for name in (str(run), "lite"))
    assert isinstance(learnt, WordGrounder)
    assert isinstance(shipped, WordGrounder)
    assert learnt.calibration == shipped.calibration, "without one, whatever is asked for would count as found"
    assert learnt.calibration is not None
    again = tmp_path / "again.json"
    call("label", album, "--phrases", "plate", "--boxes", "1", "--grounder", run, "-o", again)
    (note,) = notes_of(json.loads(again.read_text()), "coffee.jpg")
    assert overlap(corners(note), other) > 0.3, "it was below .1; regions vote, so it is not the very box"


def large(box: Box) -> bool:
    return (box[2] - box[0]) * (box[3] - box[1]) > 3000
