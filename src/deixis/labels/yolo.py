"""YOLO: a folder with ``classes.txt`` or ``data.yaml`` and a text file a photo, empty where there is nothing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from deixis.errors import BadFileError
from deixis.labels.raw import RawPhoto, RawThing, number_or_text
from deixis.reading.files import read_text
from deixis.reading.yaml import read_yaml

CLASSES = ("classes.txt", "obj.names", "labels/classes.txt")
YAML = ("data.yaml", "dataset.yaml", "data.yml")


def recognises(folder: Path) -> bool:
    """Whether a folder has the names of YOLO's classes."""
    return any((folder / name).is_file() for name in (*CLASSES, *YAML))


def photos(folder: Path) -> list[RawPhoto]:
    """Return the photos of a folder of labels."""
    classes = _classes(folder)
    root = folder / "labels" if (folder / "labels").is_dir() else folder
    skipped = {folder / name for name in CLASSES}
    files = [file for file in sorted(root.rglob("*.txt")) if file not in skipped]
    if not files:
        raise BadFileError(f"{root} holds no label file (NAME.txt beside or below classes.txt)")
    return [_photo(file, root, classes) for file in files]


def _photo(file: Path, root: Path, classes: dict[int, str]) -> RawPhoto:
    photo = RawPhoto(file.relative_to(root).with_suffix("").as_posix(), str(file), shares=True)
    for number, line in enumerate(read_text(file).splitlines(), 1):
        values = [number_or_text(part) for part in line.split()]
        if not values:
            continue
        place = f"{file}, line {number}"
        corners: list[Any] = values[1:5]
        if len(corners) == 4 and all(isinstance(value, float) for value in values):
            x, y, width, height = corners
            corners = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
        label = classes.get(int(values[0])) if isinstance(values[0], float) and math.isfinite(values[0]) else None
        photo.things.append(RawThing(label, corners, place))
    return photo


def _classes(folder: Path) -> dict[int, str]:
    for name in CLASSES:
        if (folder / name).is_file():
            lines = read_text(folder / name).splitlines()
            return {at: line.strip() for at, line in enumerate(lines) if line.strip()}
    file = next(folder / name for name in YAML if (folder / name).is_file())
    data = read_yaml(file)
    names = data.get("names") if isinstance(data, dict) else None
    if isinstance(names, list):
        return {at: str(name) for at, name in enumerate(names)}
    if isinstance(names, dict) and all(isinstance(key, int) for key in names):
        return {key: str(name) for key, name in names.items()}
    raise BadFileError(f"{file} should have 'names', a list of classes or their names by number")
