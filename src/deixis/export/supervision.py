"""supervision: detections as plain JSON, and as ``sv.Detections`` where the package is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deixis.errors import MissingExtraError
from deixis.export.things import Answer, labels_in, only_photos, things_of

if TYPE_CHECKING:
    import supervision as sv


def records(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """Return the fields of ``sv.Detections`` for each answer; ``class_id`` counts over the labels of all of them."""
    classes = labels_in(answers)
    return [_fields(answer, classes) | {"image": answer.image} for answer in only_photos(answers, "supervision")]


def to_detections(answer: Answer, classes: Sequence[str] | None = None) -> sv.Detections:
    """Return an answer's boxes as ``sv.Detections``, with ``class_name`` and ``phrase`` among its data.

    Args:
        answer: A caption or phrases of a photo.
        classes: What ``class_id`` counts over, so that several answers agree; without it, the answer's own labels.
    """
    try:
        import supervision
    except ImportError as error:
        raise MissingExtraError("supervision", "supervision", "sv.Detections") from error
    only_photos([answer], "supervision")
    fields = _fields(answer, labels_in([answer]) if classes is None else list(classes))
    return supervision.Detections(
        xyxy=np.array(fields["xyxy"], dtype=np.float32).reshape(-1, 4),
        confidence=np.array(fields["confidence"], dtype=np.float32),
        class_id=np.array(fields["class_id"], dtype=np.int64),
        data={"class_name": np.array(fields["class_name"], dtype=str), "phrase": np.array(fields["phrase"], dtype=str)},
    )


def _fields(answer: Answer, classes: list[str]) -> dict[str, Any]:
    things = [thing for thing in things_of(answer) if thing.label in classes]
    return {
        "xyxy": [list(thing.box) for thing in things],
        "confidence": [thing.score for thing in things],
        "class_id": [classes.index(thing.label) for thing in things],
        "class_name": [thing.label for thing in things],
        "phrase": [thing.text for thing in things],
    }
