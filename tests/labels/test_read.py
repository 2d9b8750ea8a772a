"""Corrected labels: every form says the same, and what does not fit is noted with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from deixis.data.boxes import NO_AREA, NOT_A_BOX, OUTSIDE
from deixis.data.files import MISSING_IMAGE
from deixis.errors import BadFileError, DeixisError
from deixis.export.formats import write_export
from deixis.labels.read import NO_LABEL, OTHER_SHAPE, RESIZED, Album, read_labels
from deixis.types import GroundedPhrase, GroundedPhrases
from tests.labels.files import BOXES, WRITERS, album, coco_data, write_coco


@pytest.fixture
def photos(tmp_path: Path) -> Album:
    return Album(album(tmp_path / "photos"))


@pytest.mark.parametrize("format", WRITERS)
def test_every_form_says_the_same(format: str, photos: Album, tmp_path: Path) -> None:
    labels = read_labels(WRITERS[format](tmp_path), photos)
    assert labels.format == format
    assert len(labels.problems) == 0
    found = {name: [(thing.label, thing.box) for thing in photo.things] for name, photo in labels.photos.items()}
    assert found.keys() == BOXES.keys()
    for name, boxes in BOXES.items():
        for (label, box), (wanted, at) in zip(found[name], boxes, strict=True):
            assert label == wanted
            assert box == pytest.approx(at, abs=1e-3)


@pytest.mark.parametrize("format", ["coco", "labelstudio", "yolo", "voc", "cvat", "json"])
def test_what_we_write_we_read(format: str, photos: Album, tmp_path: Path) -> None:
    phrases = tuple(
        GroundedPhrase(label, (box,), (0,), 0.9, label=label) for label, box in [("red dog", BOXES["a.jpg"][0][1])]
    )
    out = tmp_path / ("out" if format in ("yolo", "voc") else f"out.{'xml' if format == 'cvat' else 'json'}")
    write_export(out, [GroundedPhrases("a.jpg", (200, 100), phrases)], format)
    (photo,) = read_labels(out, photos).photos.values()
    (thing,) = photo.things
    assert (photo.image, thing.label) == ("a.jpg", "red dog")
    assert thing.box == pytest.approx(BOXES["a.jpg"][0][1], abs=1e-3)


def changed(photos: Album, tmp_path: Path, change: Any) -> dict[str, Any]:
    data = coco_data()
    change(data)
    file = tmp_path / "labels.json"
    file.write_text(json.dumps(data))
    labels = read_labels(file, photos)
    problems = {kind: labels.problems.count(kind) for kind in labels.problems.kinds}
    return {"problems": problems, "photos": labels.photos}


def put(data: dict[str, Any], key: str, at: int, **values: Any) -> bool:
    data[key][at] |= values
    return False


@pytest.mark.parametrize(
    ("change", "kind", "boxes_left"),
    [
        (lambda d: put(d, "images", 0, file_name="gone.jpg"), MISSING_IMAGE, 1),
        (lambda d: put(d, "annotations", 0, image_id=99), MISSING_IMAGE, 2),
        (lambda d: put(d, "annotations", 0, bbox=[-50, 10, 100, 300]), OUTSIDE, 3),
        (lambda d: put(d, "annotations", 0, bbox=[500, 500, 10, 10]), OUTSIDE, 2),
        (lambda d: put(d, "annotations", 0, bbox=[5, 5, 0, 10]), NO_AREA, 2),
        (lambda d: put(d, "annotations", 0, bbox=[5, 5]), NOT_A_BOX, 2),
        (lambda d: put(d, "annotations", 0, bbox=["a", None, {}, 1e400]), NOT_A_BOX, 2),
        (lambda d: put(d, "annotations", 0, category_id=12), NO_LABEL, 2),
        (lambda d: put(d, "categories", 0, name="  "), NO_LABEL, 2),
        (lambda d: put(d, "images", 0, width=400, height=200), RESIZED, 3),
        (lambda d: put(d, "images", 0, width=100, height=200), OTHER_SHAPE, 1),
    ],
)
def test_what_does_not_fit_is_noted(change: Any, kind: str, boxes_left: int, photos: Album, tmp_path: Path) -> None:
    found = changed(photos, tmp_path, change)
    assert found["problems"] == {kind: 1}
    assert sum(len(photo.things) for photo in found["photos"].values()) == boxes_left
    for photo in found["photos"].values():
        for thing in photo.things:
            x1, y1, x2, y2 = thing.box
            assert 0 <= x1 < x2 <= 200
            assert 0 <= y1 < y2 <= 100


def test_a_photo_that_was_made_smaller_takes_its_boxes_along(photos: Album, tmp_path: Path) -> None:
    Image.new("RGB", (100, 50)).save(photos.folder / "a.jpg")
    (thing, _) = read_labels(write_coco(tmp_path), photos).photos["a.jpg"].things
    assert thing.box == (10.0, 5.0, 60.0, 45.0)


def test_only_what_somebody_has_looked_at_counts(photos: Album, tmp_path: Path) -> None:
    found = changed(photos, tmp_path, lambda d: put(d, "images", 1, reviewed=True))
    assert list(found["photos"]) == ["deep/b.png"]
    with pytest.raises(DeixisError, match="nobody has looked at any of its 2 photos"):
        changed(photos, tmp_path, lambda d: put(d, "images", 0, reviewed=False) or put(d, "images", 1, reviewed=False))


def test_names_that_several_photos_have_are_not_guessed(photos: Album, tmp_path: Path) -> None:
    Image.new("RGB", (200, 100)).save(photos.folder / "b.png")
    both = Album(photos.folder)
    assert both.find("b.png") == "b.png"
    assert both.find("elsewhere/deep/b.png") == "deep/b.png"
    Image.new("RGB", (200, 100)).save(photos.folder / "deep" / "a.jpg")
    assert Album(photos.folder).find("a") is None
    assert both.find("c.png") == ""


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("labels.json", "{", "broken JSON"),
        ("labels.json", '{"images": 3}', "categories should be a list"),
        ("labels.json", "[3]", "is 3"),
        ("labels.xml", "<annotations", "broken XML"),
        ("labels.xml", '<!DOCTYPE a [<!ENTITY b "c">]><annotations/>', "declares a document type or an entity"),
        ("labels.xml", "<annotations/>", "has no corrected photo"),
        ("yolo/classes.txt", "dog", "holds no label file"),
        ("yolo/data.yaml", "names: 3", "should have 'names'"),
        ("folder/notes.md", "", "neither classes.txt"),
    ],
)
def test_files_that_are_none_are_one_error(name: str, text: str, why: str, photos: Album, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    with pytest.raises(DeixisError, match=why):
        read_labels(file if "/" not in name else file.parent, photos)


def test_an_album_without_photos_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="no photo in"):
        Album(tmp_path)
    with pytest.raises(BadFileError, match="is no folder"):
        Album(tmp_path / "gone")


LONG = "1" + "0" * 400
"""A number that JSON may hold, and no float."""
STRANGE: list[tuple[str, str]] = [
    ("yolo/a.txt", "inf 0.5 0.5 0.2 0.2\n0 1e999 0.5 0.2 0.2\n"),
    ("cvat.xml", '<annotations><image name="a.jpg" width="1e999" height="5"/></annotations>'),
    ("voc.xml", "<annotation><size><width>inf</width><height>9</height></size></annotation>"),
    ("tasks.json", '[{"data": {"image": "a.jpg"}, "annotations": 5.5}]'),
    ("tasks.json", '[{"data": {"image": "http://[a.jpg"}, "annotations": [{"result": []}]}]'),
    (
        "tasks.json",
        '[{"data": {"image": "a.jpg"}, "annotations": [{"result": [{"id": [1], "type": "rectanglelabels", "value": '
        '{"x": LONG, "y": 1, "width": 1.5, "height": 1, "rectanglelabels": ["dog"]}}]}]}]',
    ),
    (
        "coco.json",
        '{"images": [{"id": 1, "file_name": "a.jpg"}], "categories": [{"id": 1, "name": "dog"}], "annotations": '
        '[{"image_id": 1, "category_id": 1, "bbox": [LONG, 1, 1.5, 2], "score": LONG}]}',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), STRANGE)
def test_numbers_and_parts_that_cannot_be_are_noted_or_refused(name: str, text: str, tmp_path: Path) -> None:
    """Found by the fuzzer (``python -m benchmarks.fuzz --only labels``): each of them ended with a traceback."""
    photos = Album(album(tmp_path / "photos"))
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text.replace("LONG", LONG))
    if name.startswith("yolo"):
        (file.parent / "classes.txt").write_text("dog\n")
        file = file.parent
    try:
        found = read_labels(file, photos, everything=True)
    except DeixisError:
        return
    assert [photo.things for photo in found.photos.values()] == [()]
