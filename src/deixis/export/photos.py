"""Boxes photo by photo, for formats that know photos and classes but no sentences: each thing once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np

from deixis.errors import DeixisError
from deixis.export.things import Answer, Thing, only_photos, things_of
from deixis.geometry import iou

SAME = 0.7
"""Boxes of one class that overlap by more are one thing that several captions name."""


@dataclass(slots=True)
class PhotoBoxes:
    """A photo and what was found in it."""

    image: str
    size: tuple[int, int]
    things: list[Thing] = field(default_factory=list)


def boxes_by_photo(answers: Sequence[Answer], format: str) -> list[PhotoBoxes]:
    """Return what was found in each photo; what is doubted, or was named by a caption before, is left out."""
    found: dict[str, PhotoBoxes] = {}
    for answer in only_photos(answers, format):
        photo = found.setdefault(answer.image, PhotoBoxes(answer.image, answer.size))
        own = [thing for thing in things_of(answer) if thing.box[2] > thing.box[0] and thing.box[3] > thing.box[1]]
        photo.things += [thing for thing in own if not _known(photo.things, thing)]
    return list(found.values())


def _known(things: Sequence[Thing], thing: Thing) -> bool:
    """Whether a thing of the same class lies at the same place already."""
    boxes = np.array([known.box for known in things if known.label == thing.label]).reshape(-1, 4)
    return bool((iou(np.array([thing.box]), boxes) > SAME).any())


def file_of(image: str, ending: str, taken: dict[str, str], format: str) -> str:
    """Return the name of a photo's file inside a folder of labels: its own path with another ending."""
    path = PurePath(image)
    if path.is_absolute() or ".." in path.parts:
        path = PurePath(path.name)  # nothing is written outside the folder
    name = path.with_suffix(ending).as_posix()
    if taken.setdefault(name, image) != image:
        raise DeixisError(f"{format} would write one file for {taken[name]!r} and {image!r}: it knows no endings")
    return name


def xml_text(text: str) -> str:
    """Return text without the control characters that XML has no way to hold."""
    return "".join(letter if letter >= " " and letter not in "\ufffe\uffff" else " " for letter in text)
