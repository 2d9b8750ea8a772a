"""Boxes as files give them, made fit for use: scaled to the file's size, put in order, cut at the border."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deixis.data.dataset import Problems
from deixis.types.sentence import Box

OUTSIDE = "box outside the image"
NO_AREA = "box without area"
NOT_A_BOX = "not a box"

_SLACK = 1.0  # annotators' tools count pixels from 0 or from 1; one pixel over the border is not worth a report
_HUGE = 1e9  # no image has as many pixels to a side; also leaves out infinity and what is not a number


def scale_box(box: Box, old: tuple[int, int], new: tuple[int, int]) -> Box:
    """Carry a box from an image of size ``old`` (width, height) to the same image at size ``new``."""
    x, y = new[0] / old[0], new[1] / old[1]
    return box[0] * x, box[1] * y, box[2] * x, box[3] * y


def usable_box(
    value: Sequence[Any],
    annotated: tuple[int, int] | None,
    size: tuple[int, int] | None,
    problems: Problems,
    place: str,
) -> Box | None:
    """Return a box in pixels of ``size``, or None, with a note, if there is nothing left of it.

    Args:
        value: x1 y1 x2 y2 as read, in pixels of ``annotated``.
        annotated: The size the annotators saw; None if unknown, then the box is taken to be in pixels of ``size``.
        size: The size of the file; None if unknown, then the box stays as it is.
        problems: Where a box that is cut or dropped is noted.
        place: File and spot, for the note.
    """
    numbers = [float(v) for v in value if isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < _HUGE]
    if len(value) != 4 or len(numbers) != 4:
        problems.note(NOT_A_BOX, f"{place}: {list(value)!r}"[:300])
        return None
    x1, y1, x2, y2 = numbers
    if x2 <= x1 or y2 <= y1:
        problems.note(NO_AREA, f"{place}: {_shown(numbers)}")
        return None
    limit = annotated or size
    if limit is not None:
        width, height = limit
        if x1 < -_SLACK or y1 < -_SLACK or x2 > width + _SLACK or y2 > height + _SLACK:
            problems.note(OUTSIDE, f"{place}: {_shown(numbers)} in an image of {width}x{height}")
        x1, x2 = max(x1, 0.0), min(x2, float(width))
        y1, y2 = max(y1, 0.0), min(y2, float(height))
        if x2 <= x1 or y2 <= y1:
            return None
    box = (x1, y1, x2, y2)
    if annotated is not None and size is not None and annotated != size:
        return scale_box(box, annotated, size)
    return box


def _shown(numbers: Sequence[float]) -> str:
    return " ".join(f"{v:g}" for v in numbers)
