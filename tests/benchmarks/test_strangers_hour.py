"""The parts of a stranger's hour that are not commands: the folder of photos, the person who corrects, the steps."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from benchmarks.strangers_hour import FIRST, THEN, Step, correct, own_photos, walk
from deixis.cli.main import COMMANDS
from deixis.data.open import open_dataset
from deixis.export import coco
from deixis.labels.read import Album, read_labels
from deixis.types import GroundedPhrase, GroundedPhrases


def test_the_folder_holds_photos_and_captions_and_no_boxes(scenes: Path, tmp_path: Path) -> None:
    people = own_photos(scenes, tmp_path / "mine", 3)
    mine = open_dataset(tmp_path / "mine")
    assert len(people) == len(mine.ids("all")) == 3
    theirs, ours = list(people.values()), [mine[id] for id in mine.ids("all")]
    boxed = [
        [p for one in some for caption in one.captions for p in caption.phrases if p.boxes] for some in (theirs, ours)
    ]
    assert boxed[0]
    assert not boxed[1]


def test_the_person_corrects_the_first_photos_alone(scenes: Path, tmp_path: Path) -> None:
    people = own_photos(scenes, tmp_path / "mine", 3)
    wrong = (0.0, 0.0, 9.0, 9.0)
    answers = []
    for name, example in people.items():
        caption = example.captions[0]
        boxed = [phrase for phrase in caption.phrases if phrase.boxes]
        spans = [caption.phrase_span(phrase) for phrase in boxed]
        found = tuple(GroundedPhrase(caption.text[a:b], (wrong,), (0,), 0.9, True, a, b) for a, b in spans)
        assert found
        assert example.size is not None
        answers.append(GroundedPhrases(name, example.size, found, caption.text))
    draft = tmp_path / "draft.json"
    draft.write_text(json.dumps(coco.labels(answers)))
    correct(draft, tmp_path / "corrected.json", people, 2)
    labels = read_labels(tmp_path / "corrected.json", Album(tmp_path / "mine"))
    assert (len(labels.photos), labels.unreviewed) == (2, 1)
    for name, photo in labels.photos.items():
        drawn = {box for phrase in people[name].captions[0].phrases for box in phrase.boxes}
        for thing in photo.things:
            assert any(thing.box == pytest.approx(box, abs=0.01) for box in drawn)


def test_every_command_is_one_of_ours() -> None:
    named = [shlex.split(command)[:2] for _, command in FIRST + THEN]
    assert {program for program, _ in named} == {"deixis"}
    assert {name for _, name in named} <= set(COMMANDS)
    assert {"caption", "search", "label", "review", "corrections", "train", "compare"} <= {name for _, name in named}


def test_steps_are_timed_and_a_failure_ends_the_walk(tmp_path: Path) -> None:
    steps: list[Step] = []
    environment = {"PATH": os.environ["PATH"]}
    busy = f'{shlex.quote(sys.executable)} -c "sum(range(60_000_000)); print(7)"'
    with pytest.raises(SystemExit, match="left with 3"):
        walk((("one", busy), ("two", "exit 3"), ("three", "true")), tmp_path, environment, steps.append)
    assert [step.part for step in steps] == ["one"]
    assert steps[0].said == "7\n"
    assert 0 < steps[0].processor <= steps[0].seconds + 1
