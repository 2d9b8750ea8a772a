"""Many photos on an engine: the answers do not depend on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deixis.answering.asking import Asking
from deixis.answering.load import load
from deixis.answering.work import Asked, Caption, FindPhrases, FindSentences, Place, Source, answer_photos
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
        list(answer_photos(model, asked, Caption(Asking()), place, source=Source("lite")))


@pytest.mark.recipe
@pytest.mark.parametrize(
    "place",
    [["--processes", "2"], pytest.param(["--engine", "ray", "--processes", "2"], marks=pytest.mark.ray)],
)
def test_the_files_of_commands_are_the_same_bytes_on_every_engine(
    place: list[str], small_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(*arguments: str) -> None:
        done = CliRunner().invoke(app, list(arguments))
        assert done.exit_code == 0, done.output

    model = ["--model", str(small_bundle)]
    photos = [str(PHOTOS / photo) for photo in NAMES]
    for name, options in (("here", []), ("there", place)):
        out = tmp_path / name
        out.mkdir()
        monkeypatch.setenv("DEIXIS_HOME", str(out / "home"))  # so that regions are found again
        call("caption", *photos, "-o", str(out / "captions.jsonl"), *model, *options)
        call("label", str(PHOTOS), "-o", str(out / "labels.json"), *model, *options)
        call("search", str(PHOTOS), "--index", str(out / "index"), *model, *options)
        evaluated = options or ["--processes", "0"]
        call("evaluate", str(small_bundle), str(PHOTOS), "--replicates", "20", "-o", str(out / "scores"), *evaluated)
    here, there = (files_of(tmp_path / name) for name in ("here", "there"))
    assert here == there
    made = {"captions.jsonl", "labels.json", "index/index.json", "index/segment-000001/regions.safetensors"}
    assert made | {"index/segment-000001/words.npy", "scores/captions.jsonl"} <= set(here)
    assert any(name.startswith("home/stores/") and name.endswith(".safetensors") for name in here)
    assert len(here["captions.jsonl"].splitlines()) == 3
    assert len(json.loads(here["labels.json"])["images"]) == 3


def files_of(folder: Path) -> dict[str, bytes]:
    """The files below a folder but parses, which say when they were packed; of scores all but how long they took."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".md", ".html", ".gz")]
    found = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    sections = json.loads(found["scores/scores.json"])["sections"]
    kept = {section["protocol"]: section["scores"] for section in sections if "answer_ms" not in section["scores"]}
    assert 3 < len(kept) == len(sections) - 1
    return {**found, "scores/scores.json": json.dumps(kept).encode()}
