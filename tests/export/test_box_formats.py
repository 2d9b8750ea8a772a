"""YOLO, Pascal VOC and CVAT: boxes worked out by hand, and what these formats cannot say."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
import yaml

from deixis.errors import DeixisError
from deixis.export import cvat, voc, yolo
from deixis.export.formats import write_export
from deixis.export.photos import boxes_by_photo
from deixis.types import GroundedPhrase, GroundedPhrases
from tests.export.answers import CLIP, DOG, EVIL, caption

ASKED = GroundedPhrases(
    "deep/a.b.jpg",
    (200, 100),
    (
        GroundedPhrase(
            "red car", ((20.0, 10.0, 120.0, 90.0), (150.0, 60.0, 170.0, 80.0)), (0, 0), 0.8, label="red car"
        ),
        GroundedPhrase("ghost", ((0.0, 0.0, 9.0, 9.0),), (0,), 0.1, found=False, label="ghost"),
    ),
    model="lite",
)


def test_yolo() -> None:
    files = yolo.files([ASKED])
    assert set(files) == {"classes.txt", "data.yaml", "labels/deep/a.b.txt"}
    assert files["classes.txt"] == "ghost\nred car\n"
    # centre (70, 50), size 100 x 80; centre (160, 70), size 20 x 20, of 200 x 100
    assert files["labels/deep/a.b.txt"] == (
        "1 0.350000 0.500000 0.500000 0.800000\n1 0.800000 0.700000 0.100000 0.200000\n"
    )
    assert yaml.safe_load(files["data.yaml"])["names"] == {0: "ghost", 1: "red car"}


def test_voc_counts_pixels_from_one_and_includes_the_last() -> None:
    ((name, text),) = voc.files([ASKED]).items()
    root = Xml.fromstring(text)
    assert name == "deep/a.b.xml"
    assert [root.findtext(place) for place in ("folder", "filename", "size/width", "size/height")] == [
        *("deep", "a.b.jpg", "200", "100"),
    ]
    assert [item.findtext("name") for item in root.iter("object")] == ["red car", "red car"]
    first = root.find("object/bndbox")
    assert first is not None
    assert [side.text for side in first] == ["21", "11", "120", "90"]  # columns 20 to 119 when counted from 0


def test_cvat() -> None:
    root = Xml.fromstring(cvat.document([ASKED]))
    assert [label.text for label in root.findall("meta/task/labels/label/name")] == ["ghost", "red car"]
    (image,) = root.findall("image")
    assert (image.get("name"), image.get("width"), image.get("height")) == ("deep/a.b.jpg", "200", "100")
    boxes = [[box.get(side) for side in ("label", "xtl", "ytl", "xbr", "ybr")] for box in image]
    assert boxes == [
        ["red car", "20.00", "10.00", "120.00", "90.00"],
        ["red car", "150.00", "60.00", "170.00", "80.00"],
    ]


def test_what_five_captions_name_is_one_thing() -> None:
    again = caption(DOG.image, "a dog runs", {"dog": (22, 10, 120, 90)})
    elsewhere = caption(DOG.image, "a dog sits", {"dog": (150, 0, 190, 40)})
    (photo,) = boxes_by_photo([DOG, again, elsewhere], "yolo")
    assert [(thing.label, thing.box) for thing in photo.things] == [
        ("dog", (20, 10, 120, 90)),
        ("ball", (150, 60, 170, 80)),
        ("dog", (150, 0, 190, 40)),
    ]


def test_folders_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    assert write_export(tmp_path / "new" / "yolo", [ASKED], "yolo") == [tmp_path / "new" / "yolo"]
    assert (tmp_path / "new" / "yolo" / "labels" / "deep" / "a.b.txt").is_file()
    clash = GroundedPhrases("deep/a.b.png", (200, 100), ASKED.phrases)
    with pytest.raises(DeixisError, match=r"one file for 'deep/a\.b\.jpg' and 'deep/a\.b\.png'"):
        write_export(tmp_path / "clash", [ASKED, clash], "voc")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    with pytest.raises(DeixisError, match="is a clip"):
        write_export(tmp_path / "clip", [CLIP], "yolo")


@pytest.mark.parametrize("image", ["/etc/../etc/passwd.jpg", "../../up.jpg"])
def test_nothing_leaves_the_folder(image: str, tmp_path: Path) -> None:
    write_export(tmp_path / "out", [caption(image, "a dog", {"dog": (0, 0, 9, 9)})], "voc")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.xml")] == [
        f"out/{Path(image).stem}.xml"
    ]


def test_hostile_names_are_text() -> None:
    evil = caption(f"{EVIL}\x00", f"{EVIL} dog", {"dog": (0, 0, 9, 9)})
    assert Xml.fromstring(cvat.document([evil])).find("image") is not None
    assert all(Xml.fromstring(text).findtext("object/name") == "dog" for text in voc.files([evil]).values())
