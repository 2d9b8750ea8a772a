from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from deixis.cli.main import app
from deixis.data.open import open_dataset
from deixis.data.scenes import COLOURS, NOUNS, SIZE, make_scenes
from deixis.errors import DeixisError
from deixis.images import load_image


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "scenes"
    make_scenes(folder, {"train": 30, "val": 6, "test": 4})
    return folder


def test_the_reader_takes_every_scene_and_finds_nothing_wrong(drawn: Path) -> None:
    dataset = open_dataset(drawn)
    assert dataset.splits == ("train", "val", "test")
    examples = list(dataset.examples())
    assert len(examples) == 40
    assert not dataset.problems.kinds
    named = {caption.phrase_text(p).split()[-1] for e in examples for caption in e.captions for p in caption.phrases}
    assert named == set(NOUNS)
    for example in examples:
        assert len(example.captions) == 3
        for caption in example.captions:
            assert caption.phrases
            for phrase in caption.phrases:
                (box,) = phrase.boxes
                assert 0 <= box[0] < box[2] <= SIZE[0]
                assert 0 <= box[1] < box[3] <= SIZE[1]


def test_a_coloured_thing_has_its_colour_inside_its_box(drawn: Path) -> None:
    seen = 0
    for example in open_dataset(drawn).examples():
        pixels = np.asarray(load_image(example.source))  # type: ignore[arg-type]
        for caption in example.captions:
            for phrase in caption.phrases:
                name = next((name for name in COLOURS if name in caption.phrase_text(phrase).split()), None)
                if name is None:
                    continue
                x1, y1, x2, y2 = (round(value) for value in phrase.boxes[0])
                inside = (pixels[y1:y2, x1:x2] == COLOURS[name]).all(-1)
                # what stands in front may hide a house, but never two thirds of a shirt, ball, car or dog
                assert inside.mean() > (0.05 if "house" in caption.phrase_text(phrase) else 0.2)
                seen += 1
    assert seen > 60


def test_the_same_seed_draws_the_same_files(drawn: Path, tmp_path: Path) -> None:
    make_scenes(tmp_path / "again", {"train": 30, "val": 6, "test": 4})
    for file in sorted(drawn.rglob("*.*")):
        assert (tmp_path / "again" / file.relative_to(drawn)).read_bytes() == file.read_bytes()
    make_scenes(tmp_path / "other", {"train": 30}, seed=1)
    one, other = (np.asarray(Image.open(at / "train" / "scene-0000.png")) for at in (drawn, tmp_path / "other"))
    assert not np.array_equal(one, other)


def test_bad_orders_are_refused_and_leave_nothing(drawn: Path, tmp_path: Path) -> None:
    with pytest.raises(DeixisError, match="not 'dev'"):
        make_scenes(tmp_path / "scenes", {"dev": 3})
    with pytest.raises(DeixisError, match="at least one scene, not 0"):
        make_scenes(tmp_path / "scenes", {"val": 0})
    with pytest.raises(DeixisError, match="exists already"):
        make_scenes(drawn, {"val": 1})
    assert not list(tmp_path.iterdir())


def test_the_command_says_what_it_drew(tmp_path: Path) -> None:
    arguments = ["data", "scenes", str(tmp_path / "s"), "--train", "3", "--val", "2", "--test", "1", "--json"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    facts = json.loads(result.stdout)
    assert (facts["train"], facts["val"], facts["test"]) == (3, 2, 1)
    boxed = sum(len(c.phrases) for e in open_dataset(tmp_path / "s").examples() for c in e.captions)
    assert facts["phrases"] == boxed
