"""A small album, and one set of labels in the forms of all tools: what a person left of a draft."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PIL import Image

from deixis.types import Box

SIZE = (200, 100)
BOXES: dict[str, list[tuple[str, Box]]] = {
    "a.jpg": [("dog", (20.0, 10.0, 120.0, 90.0)), ("ball", (150.0, 60.0, 170.0, 80.0))],
    "deep/b.png": [("dog", (0.0, 0.0, 50.0, 50.0))],
}


def album(folder: Path) -> Path:
    """Make the photos."""
    (folder / "deep").mkdir(parents=True)
    for name in BOXES:
        Image.new("RGB", SIZE, "teal").save(folder / name)
    return folder


def coco_data() -> dict[str, Any]:
    """The labels as COCO instances."""
    labels = sorted({label for boxes in BOXES.values() for label, _ in boxes})
    images = [
        {"id": at, "file_name": name, "width": SIZE[0], "height": SIZE[1]} for at, name in enumerate(BOXES, start=7)
    ]
    notes = [
        {
            "image_id": image["id"],
            "category_id": labels.index(label) + 1,
            "bbox": [x1, y1, x2 - x1, y2 - y1],
        }
        for image in images
        for label, (x1, y1, x2, y2) in BOXES[str(image["file_name"])]
    ]
    categories = [{"id": at, "name": label} for at, label in enumerate(labels, start=1)]
    return {"images": images, "categories": categories, "annotations": notes}


def write_coco(folder: Path) -> Path:
    """Write them as COCO."""
    file = folder / "labels.json"
    file.write_text(json.dumps(coco_data()))
    return file


def write_labelstudio(folder: Path) -> Path:
    """Write them as Label Studio exports them: an annotation that a person made, after one that was cancelled."""
    tasks = []
    for number, (name, boxes) in enumerate(BOXES.items()):
        result = [
            {
                "id": f"r{at}",
                "type": "rectanglelabels",
                "original_width": SIZE[0],
                "original_height": SIZE[1],
                "value": {
                    "x": x1 / 2, "y": y1, "width": (x2 - x1) / 2, "height": y2 - y1, "rectanglelabels": [label],
                },  # per cent of 200 and of 100
            }
            for at, (label, (x1, y1, x2, y2)) in enumerate(boxes)
        ]  # fmt: skip
        address = f"/data/local-files/?d={name}" if number else f"/data/upload/3/0a1b2c3d-{name}"
        notes = [{"was_cancelled": True, "result": []}, {"result": result}]
        tasks.append({"data": {"image": address}, "annotations": notes})
    file = folder / "export.json"
    file.write_text(json.dumps(tasks))
    return file


def write_yolo(folder: Path) -> Path:
    """Write them as YOLO."""
    root = folder / "yolo"
    (root / "labels" / "deep").mkdir(parents=True)
    (root / "data.yaml").write_text("names: [ball, dog]\n")
    for name, boxes in BOXES.items():
        lines = [
            f"{['ball', 'dog'].index(label)} {(x1 + x2) / 400} {(y1 + y2) / 200} {(x2 - x1) / 200} {(y2 - y1) / 100}"
            for label, (x1, y1, x2, y2) in boxes
        ]
        (root / "labels" / name).with_suffix(".txt").write_text("\n".join(lines))
    return root


def write_voc(folder: Path) -> Path:
    """Write them as Pascal VOC."""
    root = folder / "voc"
    (root / "deep").mkdir(parents=True)
    for name, boxes in BOXES.items():
        objects = "".join(
            f"<object><name>{label}</name><bndbox><xmin>{x1 + 1:.0f}</xmin><ymin>{y1 + 1:.0f}</ymin>"
            f"<xmax>{x2:.0f}</xmax><ymax>{y2:.0f}</ymax></bndbox></object>"
            for label, (x1, y1, x2, y2) in boxes
        )
        size = f"<size><width>{SIZE[0]}</width><height>{SIZE[1]}</height></size>"
        text = f"<annotation><filename>{Path(name).name}</filename>{size}{objects}</annotation>"
        (root / name).with_suffix(".xml").write_text(text)
    return root


def write_cvat(folder: Path) -> Path:
    """Write them as CVAT for images."""
    images = "".join(
        f'<image name="{name}" width="{SIZE[0]}" height="{SIZE[1]}">'
        + "".join(
            f'<box label="{label}" xtl="{x1}" ytl="{y1}" xbr="{x2}" ybr="{y2}"/>' for label, (x1, y1, x2, y2) in boxes
        )
        + "</image>"
        for name, boxes in BOXES.items()
    )
    file = folder / "cvat.xml"
    file.write_text(f"<annotations><version>1.1</version>{images}</annotations>")
    return file


WRITERS = {
    "coco": write_coco,
    "labelstudio": write_labelstudio,
    "yolo": write_yolo,
    "voc": write_voc,
    "cvat": write_cvat,
}
