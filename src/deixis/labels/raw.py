"""What label files say, as they say it: photos by some name, boxes in some unit. ``read.py`` makes sense of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

HUGE = 1e9
"""What no side of a box reaches, in pixels or in per cent; infinities, and numbers that no float holds, are above."""
LARGEST_SIDE = 10**6


@dataclass(frozen=True, slots=True)
class RawThing:
    """A box with its class, and the words of a sentence that name it where the file knows them."""

    label: Any
    corners: Sequence[Any]
    """x1 y1 x2 y2 in pixels of the size the file gives, or as shares of the photo (``RawPhoto.shares``)."""
    place: str
    """File and spot, for messages."""
    phrase: str | None = None
    sentence: str | None = None
    span: tuple[int, int] | None = None
    score: float | None = None
    trusted: bool = True
    """False for a box that our draft itself doubts."""


@dataclass(slots=True)
class RawPhoto:
    """A photo as a file calls it, its boxes, and whether somebody has looked at it."""

    name: str
    place: str
    size: tuple[int, int] | None = None
    shares: bool = False
    reviewed: bool = True
    marked: bool = False
    """Whether its file tells photos that are done from others; else all of them count as done."""
    doubt: float = 0.0
    """How much it needs a look, 0 to 1, where the file says so."""
    things: list[RawThing] = field(default_factory=list)


def number_or_text(text: str | None) -> Any:
    """Return what a number is written as, or the text itself, which is then no usable side of a box."""
    try:
        return float(text or "")
    except ValueError:
        return text


def corners_of(sides: Sequence[Any], per: float = 1.0) -> list[Any]:
    """Return x1 y1 x2 y2 of x, y, width and height in units of ``per``; what is no box stays as the file has it."""
    if len(sides) != 4 or not all(isinstance(side, int | float) and abs(side) < HUGE for side in sides):
        return list(sides)
    x, y, width, height = (side / per for side in sides)
    return [x, y, x + width, y + height]


def size_of(width: Any, height: Any) -> tuple[int, int] | None:
    """Return a size in whole pixels, if numbers that may be any are one."""
    if all(isinstance(side, int | float) and 1 <= side < LARGEST_SIDE for side in (width, height)):
        return int(width), int(height)
    return None
