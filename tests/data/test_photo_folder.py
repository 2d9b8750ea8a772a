"""Folders of photos with captions as people keep them: tables of several kinds, JSON, a text beside each photo."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deixis.data import open_dataset
from deixis.data.caption_tables import read_captions
from deixis.data.dataset import Problems
from deixis.errors import BadFileError

Photo = Callable[..., bytes]
SAID = {"a.jpg": ["A cat, asleep.", 'The "best" cat.'], "b.jpg": ["Two dogs run."]}


@pytest.fixture
def photos(tmp_path: Path, photo: Photo) -> Path:
    for name in SAID:
        (tmp_path / name).write_bytes(photo())
    return tmp_path


def captions(path: Path) -> dict[str, list[str]]:
    dataset = open_dataset(path)
    assert dataset.format == "photos"
    return {example.id: [caption.text for caption in example.captions] for example in dataset.examples()}


TABLES = {
    "captions.csv": 'image,caption\na.jpg,"A cat, asleep."\na.jpg,"The ""best"" cat."\nb.jpg,Two dogs run.\n',
    "captions.tsv": 'caption\tfile_name\nA cat, asleep.\ta.jpg\nThe "best" cat.\ta.jpg\nTwo dogs run.\tb.jpg\n',
    "captions.txt": 'a.jpg#0\tA cat, asleep.\r\na.jpg#1\tThe "best" cat.\r\nb.jpg#0\tTwo dogs run.\r\n',
    "captions.json": json.dumps({"a.jpg": SAID["a.jpg"], "b.jpg": SAID["b.jpg"][0]}),
    "captions.jsonl": "\n".join(
        json.dumps({"image": name, "text": text}) for name, texts in SAID.items() for text in texts
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_same_captions_from_every_form(name: str, photos: Path) -> None:
    (photos / name).write_text(TABLES[name], newline="")
    assert captions(photos) == SAID
    other = photos / name.replace("captions", "mine")  # any name, when the file itself is given
    (photos / name).rename(other)
    assert captions(other) == SAID


def test_other_tables(photos: Path) -> None:
    file = photos / "captions.csv"
    file.write_text('image_name| comment_number| comment\na.jpg| 0| A cat, asleep.\na.jpg| 1| The "best" cat.\n')
    assert captions(photos) == {"a.jpg": SAID["a.jpg"]}, "Flickr30k's own table"
    file.write_text("a,A cat, asleep.\n".replace("a,", "a.jpg,"))
    assert captions(photos) == {"a.jpg": ["A cat, asleep."]}, "no header, and a comma that nobody quoted"
    file.write_text("photo;caption\nA;nothing\nb;Two dogs, running.\n")
    assert captions(photos) == {"b.jpg": ["Two dogs, running."]}, "photos without their ending"


def test_a_text_beside_each_photo(photos: Path, photo: Photo) -> None:
    (photos / "train").mkdir()
    (photos / "train" / "c.png").write_bytes(photo(format="PNG"))
    (photos / "train" / "c.txt").write_text("A bird.\n\nOne bird sings.\n")
    (photos / "a.txt").write_text("A cat.")
    dataset = open_dataset(photos)
    assert dataset.splits == ("train", "all")
    assert [example.captions[1].text for example in dataset.examples("train")] == ["One bird sings."]
    assert dataset["a.jpg"].size == (100, 50)
    assert dataset.problems.places("photo without a caption") == (str(photos / "b.jpg"),)


def test_splits_from_a_column(photos: Path) -> None:
    (photos / "captions.csv").write_text("image,caption,split\na.jpg,A cat.,Validation\nb.jpg,Two dogs run.,train\n")
    dataset = open_dataset(photos)
    assert dataset.splits == ("train", "val")
    assert dataset.ids("val") == ("a.jpg",)
    assert dataset["a.jpg"].captions[0].text == "A cat.", "the caption is not the last column"
    assert dataset.drawn_splits == ()


def test_what_is_wrong_is_noted(photos: Path, photo: Photo) -> None:
    for folder in ("x", "y"):
        (photos / folder).mkdir()
        (photos / folder / "same.jpg").write_bytes(photo())
    rows = [
        "image,caption",
        "a.jpg,A cat.",
        "gone.jpg,Nothing.",
        "same.jpg,Which one?",
        "lonely",
        "x/same.jpg,This.",
        "b.jpg,",
    ]
    (photos / "captions.csv").write_text("\n".join(rows))
    dataset = open_dataset(photos)
    assert {example.id for example in dataset.examples()} == {"a.jpg", "b.jpg", "x/same.jpg"}
    assert {kind: dataset.problems.count(kind) for kind in dataset.problems.kinds} == {
        "broken record": 1,
        "missing image": 1,
        "two images with one id": 1,
        "photo without a caption": 1,
        "empty caption": 1,
    }
    assert "captions.csv, row 5" in dataset.problems.places("broken record")[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("one two three", "no tab, comma"), ("id,words\n1,A cat.", "name the columns"), ("A cat.,a.jpg", "before its")],
)
def test_a_table_that_is_none(photos: Path, text: str, reason: str) -> None:
    (photos / "captions.csv").write_text(text)
    with pytest.raises(BadFileError, match=reason):
        open_dataset(photos).ids()


@pytest.mark.parametrize("text", ["", "\n\n", '"",""\n', ",,,\n, ,\n"])
def test_a_table_of_nothing_has_no_captions(text: str, tmp_path: Path) -> None:
    (tmp_path / "captions.csv").write_text(text)
    assert read_captions(tmp_path / "captions.csv", Problems()) == []


def test_captions_without_photos_are_text_only(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("1\tA cat.\n")
    assert open_dataset(tmp_path).format == "captions-tsv"
