"""Many photos on an engine: the answers do not depend on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deixis.answering.asking import Asking
from deixis.answering.load import load
from deixis.answering.work import Asked, Caption, FindPhrases, FindSentences, Place, answer_photos
from deixis.cli.main import app
from deixis.errors import DeixisError
from deixis.types import Sentence

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"
NAMES = ("astronaut.jpg", "chelsea.jpg", "coffee.jpg")


def test_photos_are_answered_in_order_and_bad_ones_are_named(small_bundle: Path) -> None:
    model = load(str(small_bundle))
    asked = [Asked(name, PHOTOS / name, None) for name in NAMES]
    asked.insert(1, Asked("gone", PHOTOS / "gone.jpg", None))
    (found,) = answer_photos(model, asked, Caption(Asking(beam=1)), Place())
    assert [answer.image for answer in found.answers] == list(NAMES)
    assert [name for name, _ in found.failed] == ["gone"]
    assert found.photos == 4


def test_two_questions_about_one_photo_are_two(small_bundle: Path) -> None:
    model = load(str(small_bundle))
    asked = [Asked("cat", PHOTOS / "chelsea.jpg", [Sentence(text)]) for text in ("a cat", "two eyes")]
    (found,) = answer_photos(model, asked, FindSentences(), Place())
    assert [answer.sentence for answer in found.answers] == ["a cat", "two eyes"]
    (same,) = answer_photos(model, [Asked("cat", PHOTOS / "chelsea.jpg", None)], FindPhrases(("a cat",)), Place())
    assert [phrase.text for phrase in same.answers[0].phrases] == ["a cat"]


def test_another_model_at_the_same_place_is_refused(small_bundle: Path) -> None:
    model = load(str(small_bundle))
    place = Place(processes=1)
    asked = [Asked("cat", PHOTOS / "chelsea.jpg", None)]
    with pytest.raises(DeixisError, match="every machine needs the same"):
        list(answer_photos(model, asked, Caption(Asking()), place, source=("lite", None)))


@pytest.mark.recipe
@pytest.mark.parametrize("place", [["--processes", "2"], ["--engine", "ray", "--processes", "2"]])
def test_the_files_of_commands_are_the_same_bytes_on_every_engine(
    place: list[str], small_bundle: Path, tmp_path: Path
) -> None:
    def call(*arguments: str) -> None:
        done = CliRunner().invoke(app, [*arguments, "--model", str(small_bundle)])
        assert done.exit_code == 0, done.output

    for name, options in (("here", []), ("there", place)):
        (tmp_path / name).mkdir()
        photos = [str(PHOTOS / photo) for photo in NAMES]
        call("caption", *photos, "-o", str(tmp_path / name / "captions.jsonl"), *options)
        call("label", str(PHOTOS), "-o", str(tmp_path / name / "labels.json"), *options)
    for file in ("captions.jsonl", "labels.json"):
        here, there = ((tmp_path / name / file).read_bytes() for name in ("here", "there"))
        assert here == there
        assert here
    assert len((tmp_path / "here" / "captions.jsonl").read_text().splitlines()) == 3
    assert len(json.loads((tmp_path / "there" / "labels.json").read_text())["images"]) == 3
