"""Photos known by their bytes, whatever a kill left of the file that says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from deixis.answering.known_photos import KnownPhotos

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"


@pytest.fixture
def cat(tmp_path: Path) -> Path:
    shutil.copy(PHOTOS / "chelsea.jpg", tmp_path / "cat.jpg")
    return tmp_path / "cat.jpg"


def test_a_photo_is_known_under_another_name(cat: Path, tmp_path: Path) -> None:
    known = KnownPhotos(tmp_path / "out.jsonl")
    assert known.name_of(cat) is None
    known.add([str(cat)])
    other = cat.rename(tmp_path / "kitten.jpg")
    again = KnownPhotos(tmp_path / "out.jsonl")
    assert again.name_of(other) == str(cat)
    assert again.name_of(PHOTOS / "coffee.jpg") is None
    assert again.name_of(tmp_path / "gone.jpg") is None


def test_a_line_cut_short_is_cut_off_and_written_again(cat: Path, tmp_path: Path) -> None:
    known = KnownPhotos(tmp_path / "out.jsonl")
    known.add([str(PHOTOS / "coffee.jpg"), str(cat)])
    whole = known.path.read_bytes()
    known.path.write_bytes(whole[:-5])
    again = KnownPhotos(tmp_path / "out.jsonl")
    assert (again.name_of(PHOTOS / "coffee.jpg"), again.name_of(cat)) == (str(PHOTOS / "coffee.jpg"), None)
    again.add([str(cat)])
    assert known.path.read_bytes() == whole


def test_a_photo_that_was_known_but_not_answered_is_written_once(cat: Path, tmp_path: Path) -> None:
    known = KnownPhotos(tmp_path / "out.jsonl")
    known.add([str(cat)])  # and killed before its answer was written
    whole = known.path.read_bytes()
    again = KnownPhotos(tmp_path / "out.jsonl")
    again.add([str(cat)])
    assert known.path.read_bytes() == whole
    other = cat.rename(tmp_path / "kitten.jpg")
    again.add([str(other)])  # answered under its new name, which counts from now on
    assert KnownPhotos(tmp_path / "out.jsonl").name_of(other) == str(other)
