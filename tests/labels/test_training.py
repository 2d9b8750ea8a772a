from __future__ import annotations

from pathlib import Path

import pytest

from deixis.data.open import open_dataset
from deixis.errors import DeixisError
from deixis.labels.read import Album, LabelledThing, PhotoLabels, read_labels
from deixis.labels.training import record, write_dataset
from tests.labels.files import album, write_coco

SENTENCE = "A big dog and a ball."


def test_boxes_of_a_caption_stay_in_it_and_others_say_their_label() -> None:
    def thing(label: str, x: float, phrase: str | None = None, span: tuple[int, int] | None = None) -> LabelledThing:
        return LabelledThing(label, (x, 0.0, x + 9, 9.0), phrase, SENTENCE if span else None, span)

    things = (
        thing("dog", 0, "A big dog", (0, 9)),
        thing("dog", 20, "A big dog", (0, 9)),  # two boxes of one phrase
        thing("hat", 40, "a ball", (14, 20)),  # relabelled: the caption no longer speaks of it
        thing("dog", 60),  # added by hand
        thing("red car", 80, "red car"),
    )
    found = record(PhotoLabels("a.jpg", (200, 100), things))
    assert found["captions"] == [SENTENCE, "hat", "dog", "red car"]
    said = [
        (p["caption"], found["captions"][p["caption"]][p["start"] : p["end"]], p["boxes"]) for p in found["phrases"]
    ]
    assert said == [
        (0, "A big dog", [[0.0, 0.0, 9.0, 9.0], [20.0, 0.0, 29.0, 9.0]]),
        (1, "hat", [[40.0, 0.0, 49.0, 9.0]]),
        (2, "dog", [[60.0, 0.0, 69.0, 9.0]]),
        (3, "red car", [[80.0, 0.0, 89.0, 9.0]]),
    ]


def test_the_dataset_is_read_back_with_its_boxes(tmp_path: Path) -> None:
    photos = Album(album(tmp_path / "photos"))
    labels = read_labels(write_coco(tmp_path), photos)
    file = photos.folder / "corrected.jsonl"
    assert write_dataset(file, labels.photos.values(), photos) == 2
    dataset = open_dataset(file)
    assert set(dataset.ids()) == {"a.jpg", "deep/b.png"}
    example = dataset["a.jpg"]
    assert [caption.text for caption in example.captions] == ["dog", "ball"]
    (phrase,) = example.captions[0].phrases
    assert phrase.boxes == ((20.0, 10.0, 120.0, 90.0),)
    assert len(dataset.problems) == 0


@pytest.mark.parametrize("name", ["elsewhere.jsonl", "photos/corrected.json"])
def test_a_dataset_lies_beside_its_photos(name: str, tmp_path: Path) -> None:
    photos = Album(album(tmp_path / "photos"))
    labels = read_labels(write_coco(tmp_path), photos)
    with pytest.raises(DeixisError, match=r"\.jsonl file in the folder of the photos"):
        write_dataset(tmp_path / name, labels.photos.values(), photos)
    assert not (tmp_path / name).exists()


def test_nothing_left_is_nothing_to_learn_from(tmp_path: Path) -> None:
    photos = Album(album(tmp_path / "photos"))
    with pytest.raises(DeixisError, match="no box left"):
        write_dataset(photos.folder / "c.jsonl", [PhotoLabels("a.jpg", (200, 100), ())], photos)
