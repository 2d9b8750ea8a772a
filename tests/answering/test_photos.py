from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from deixis.answering.batches import AT_ONCE, in_batches
from deixis.answering.photos import Photo, find_photos, photo_name, read_photo
from deixis.errors import BadFileError, DeixisError
from deixis.images import load_image
from deixis.types import ImageFile

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"


@pytest.fixture
def album(tmp_path: Path) -> Path:
    for name in ("b.jpg", "a.PNG", "deep/er/c.webp", "notes.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".txt":
            file.write_text("no photo")
        else:
            Image.new("RGB", (6, 4), "red").save(file)
    return tmp_path


def test_files_folders_and_patterns(album: Path) -> None:
    names = [path.relative_to(album).as_posix() for path in find_photos([album])]
    assert names == ["a.PNG", "b.jpg", "deep/er/c.webp"]
    assert find_photos([album / "b.jpg", album, album / "b.jpg"])[0] == album / "b.jpg"
    assert len(find_photos([album / "b.jpg", album])) == 3
    assert find_photos([f"{album}/*.jpg"]) == [album / "b.jpg"]
    assert find_photos([f"{album}/**/*.webp"]) == [album / "deep/er/c.webp"]
    assert find_photos([album / "missing.jpg"]) == [album / "missing.jpg"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(album: Path) -> None:
    odd = album / "what[1].jpg"
    Image.new("RGB", (6, 4)).save(odd)
    assert find_photos([odd]) == [odd]


def test_nothing_found_is_an_error(album: Path) -> None:
    (album / "empty").mkdir()
    with pytest.raises(BadFileError, match=r"no photo .* in the folder"):
        find_photos([album / "empty"])
    with pytest.raises(BadFileError, match="no photo fits the pattern"):
        find_photos([f"{album}/*.gif"])


def test_batches_keep_the_order_bound_the_pixels_and_pass_over_what_is_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("deixis.answering.batches.PIXELS_AT_ONCE", 100)
    small, large = np.zeros((5, 5, 3), np.uint8), np.zeros((20, 20, 3), np.uint8)
    photos: list[tuple[str, Photo | ImageFile]] = [
        ("s1", small),
        ("broken", b"x"),
        ("s2", small),
        ("l1", large),
        ("l2", large),
        ("s3", small),
    ]
    wrong: list[str] = []
    batches = list(in_batches(photos, lambda name, _: wrong.append(name)))
    assert [[name for name, _ in batch] for batch in batches] == [["s1", "s2"], ["l1"], ["l2"], ["s3"]]
    assert wrong == ["broken"]
    monkeypatch.setattr("deixis.answering.batches.PIXELS_AT_ONCE", 10**9)
    many = list(in_batches([(str(at), small) for at in range(AT_ONCE + 1)], lambda *_: None))
    assert [len(batch) for batch in many] == [AT_ONCE, 1]


def test_what_is_no_photo_is_named_by_its_type() -> None:
    with pytest.raises(DeixisError, match="not float"):
        read_photo(1.5)  # type: ignore[arg-type]


def test_floats_tensors_and_open_files_are_photos_too() -> None:
    pixels = np.asarray(load_image(PHOTOS / "coffee.jpg"))
    assert np.array_equal(read_photo(pixels / 255.0), pixels)
    assert np.array_equal(read_photo((pixels / 255.0).astype(np.float32)), pixels)
    as_torch = torch.from_numpy(pixels.copy())
    assert np.array_equal(read_photo(as_torch), pixels)
    assert np.array_equal(read_photo(as_torch.permute(2, 0, 1)), pixels)
    assert np.array_equal(read_photo(as_torch.permute(2, 0, 1)[None].float() / 255), pixels)
    with (PHOTOS / "coffee.jpg").open("rb") as file:
        assert photo_name(file) == str(PHOTOS / "coffee.jpg")
        assert np.array_equal(read_photo(file), pixels)


@pytest.mark.parametrize(
    ("photo", "why"),
    [
        ("https://example.com/dog.jpg", "downloads nothing by itself.*urlopen"),
        (np.full((4, 4, 3), 3.0), "between 3 and 3: divide by 255"),
        (np.full((4, 4, 3), np.nan), "between nan and nan"),
        (torch.randn(3, 8, 8), "undo the normalisation"),
        (io.StringIO("text"), "str instead of bytes: open it with mode 'rb'"),
        (7, "not int"),
    ],
)
def test_what_is_no_photo_says_why(photo: Any, why: str) -> None:
    with pytest.raises(DeixisError, match=why):
        read_photo(photo)


def test_an_address_on_the_command_line_is_refused() -> None:
    with pytest.raises(DeixisError, match="is an address"):
        find_photos(["https://example.com/a.jpg"])
