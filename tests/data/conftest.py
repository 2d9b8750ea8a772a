"""Small datasets in the public formats, written anew for each test."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

XML = """<annotation>
<filename>7.jpg</filename>
<size><width>100</width><height>50</height><depth>3</depth></size>
<object><name>1</name><bndbox><xmin>10</xmin><ymin>5</ymin><xmax>30</xmax><ymax>25</ymax></bndbox></object>
<object><name>1</name><name>2</name><bndbox><xmin>40</xmin><ymin>10</ymin><xmax>100</xmax><ymax>50</ymax></bndbox></object>
<object><name>3</name><scene>1</scene><nobndbox>1</nobndbox></object>
</annotation>"""

SENTENCES = """[/EN#1/people Two girls] with [/EN#2/clothing/other red hats] in [/EN#3/scene a park] .
[/EN#0/notvisual It] is [/EN#4/other a game] .
Nobody knows
"""


@pytest.fixture
def photo() -> Callable[..., bytes]:
    def make(size: tuple[int, int] = (100, 50), format: str = "JPEG") -> bytes:
        buffer = io.BytesIO()
        Image.new("RGB", size, (90, 120, 150)).save(buffer, format=format)
        return buffer.getvalue()

    return make


@pytest.fixture
def entities(tmp_path: Path, photo: Callable[..., bytes]) -> Path:
    """One photo at half the annotated size, in Flickr30k Entities' layout."""
    root = tmp_path / "entities"
    for name in ("Annotations", "Sentences", "images"):
        (root / name).mkdir(parents=True)
    (root / "Annotations" / "7.xml").write_text(XML)
    (root / "Sentences" / "7.txt").write_text(SENTENCES)
    (root / "images" / "7.webp").write_bytes(photo((50, 25), "WEBP"))
    (root / "val.txt").write_text("7\n")
    return root


@pytest.fixture
def coco(tmp_path: Path, photo: Callable[..., bytes]) -> Path:
    root = tmp_path / "coco"
    (root / "annotations").mkdir(parents=True)
    (root / "val2014").mkdir()
    images = [
        {"id": 11, "file_name": "COCO_val2014_000000000011.jpg", "width": 100, "height": 50},
        {"id": 12, "file_name": "COCO_val2014_000000000012.jpg", "width": 100, "height": 50},
    ]
    captions = [
        {"id": 1, "image_id": 11, "caption": "A dog  on a\nsofa."},
        {"id": 2, "image_id": 11, "caption": "A sofa with a dog."},
        {"id": 3, "image_id": 12, "caption": "  "},
    ]
    instances = [
        {"id": 1, "image_id": 11, "category_id": 18, "bbox": [10, 10, 20, 30], "iscrowd": 0},
        {"id": 2, "image_id": 11, "category_id": 18, "bbox": [0, 0, 90, 45], "iscrowd": 1},
        {"id": 3, "image_id": 12, "category_id": 63, "bbox": [90, 40, 60, 60], "iscrowd": 0},
    ]
    categories = [{"id": 18, "name": "dog"}, {"id": 63, "name": "couch"}]
    write(root / "annotations" / "captions_val2014.json", {"images": images, "annotations": captions})
    boxes = {"images": images, "annotations": instances, "categories": categories}
    write(root / "annotations" / "instances_val2014.json", boxes)
    (root / "val2014" / "COCO_val2014_000000000011.jpg").write_bytes(photo((200, 100)))
    return root


@pytest.fixture
def anet(tmp_path: Path) -> Path:
    root = tmp_path / "anet"
    root.mkdir()
    segment = {
        "timestamps": [1.0, 11.0],
        "tokens": ["A", "man", "throws", "the", "ball", "while", "he", "runs"],
        "process_bnd_box": [[100, 50, 300, 350], [120, 60, 310, 350], [400, 10, 800, 60]],
        "process_clss": [["man", "he"], ["man", "he"], ["ball"]],
        "process_idx": [[1, 6], [1, 6], [4]],
        "frame_ind": [0, 7, 7],
        "crowds": [0, 0, 0],
    }
    video = {"duration": 60.0, "rwidth": 720, "rheight": 400, "segments": {"0": segment}}
    file = root / "anet_entities_cleaned_class_thresh50_trainval.json"
    write(file, {"vocab": ["man", "he", "ball"], "annotations": {"v_a": video}})
    write(root / "split_ids_anet_entities.json", {"training": ["v_a", "v_gone"], "validation": []})
    return root


@pytest.fixture
def referit(tmp_path: Path, photo: Callable[..., bytes]) -> Path:
    root = tmp_path / "referit"
    for name in ("metadata", "split", "images", "ReferitData"):
        (root / name).mkdir(parents=True)
    write(root / "metadata" / "referit_imcrop_bbox_dict.json", {"103_1": [10, 5, 30, 25], "103_2": [0, 0, 99, 49]})
    write(root / "metadata" / "referit_imsize_dict.json", {"103": [100, 50]})
    games = "103_1.jpg~the dog on the left~.33~.02\n103_2.jpg~sky~.5~.5\n103_9.jpg~nothing there~.5~.5\nbroken line\n"
    (root / "ReferitData" / "RealGames.txt").write_text(games)
    (root / "split" / "referit_test_imlist.txt").write_text("103\n")
    (root / "images" / "103.jpg").write_bytes(photo((200, 100)))
    return root


@pytest.fixture
def folder(tmp_path: Path, photo: Callable[..., bytes]) -> Path:
    root = tmp_path / "folder"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.png").write_bytes(photo((50, 25), "PNG"))
    (root / "b.jpg").write_bytes(photo())
    phrases = [
        {"text": "a dog", "boxes": [[10, 10, 60, 40]]},
        {"start": 12, "end": 18, "box": [0, 0, 100, 50], "label": "couch", "entity": 5},
        {"text": "a cat", "boxes": [[0, 0, 1, 1]]},
    ]
    lines: list[Any] = [
        {"file_name": "sub/a.png", "text": "I see a dog a sofa.", "width": 100, "height": 50, "phrases": phrases},
        {"file_name": "b.jpg", "text": "One.", "objects": {"bbox": [[10, 20, 30, 10]], "categories": ["cup"]}},
        {"file_name": "b.jpg", "text": "Two."},
        {"file_name": "../b.jpg", "text": "Out."},
        {"file_name": "gone.jpg", "text": ""},
    ]
    (root / "metadata.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n{broken\n")
    return root


@pytest.fixture
def shards(tmp_path: Path, photo: Callable[..., bytes]) -> Path:
    root = tmp_path / "shards"
    root.mkdir()
    record = {"caption": "A red bus.", "phrases": [{"text": "A red bus", "boxes": [[0, 0, 50, 50]]}]}
    pack(
        root / "train-000000.tar",
        {"0001.jpg": photo(), "0001.json": json.dumps(record).encode(), "0002.png": photo((30, 20), "PNG")}
        | {"0002.txt": b"First.\nSecond.\n", "../evil.jpg": photo()},
    )
    pack(root / "train-000001.tar", {"0003.webp": photo((10, 10), "WEBP"), "0003.txt": b"Third.", "0001.jpg": photo()})
    pack(root / "val-000000.tar", {"0009.txt": b"No picture."})
    return root


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


def pack(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
