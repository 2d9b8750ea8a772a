"""FiftyOne: the ``labels.json`` of a FiftyOneImageDetectionDataset.

Load it with::

    fiftyone.Dataset.from_dir(
        dataset_type=fiftyone.types.FiftyOneImageDetectionDataset, data_path="photos/", labels_path="labels.json"
    )

An image is named by its path below ``data_path`` without the ending, or by its absolute path.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from deixis.errors import DeixisError
from deixis.export.coco import as_xywh
from deixis.export.things import Answer, labels_in, only_photos, relative, text_of, things_of
from deixis.images import IMAGE_SUFFIXES


def labels(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return classes and detections; what is doubted is in it too, with the attribute ``trusted`` false."""
    found: dict[str, list[dict[str, Any]]] = {}
    named: dict[str, str] = {}
    for answer in only_photos(answers, "fiftyone"):
        name = uuid_of(answer.image)
        if named.setdefault(name, answer.image) != answer.image:
            raise DeixisError(
                f"FiftyOne would take {named[name]!r} and {answer.image!r} for one photo: it ignores endings"
            )
        detections = found.setdefault(name, [])
        for thing in things_of(answer, doubtful=True):
            attributes: dict[str, Any] = {"phrase": thing.text, "trusted": thing.trusted}
            sentence = text_of(answer)
            if sentence is not None:
                attributes["sentence"] = sentence
            detections.append(
                {
                    "label": thing.label,
                    "bounding_box": as_xywh(relative(thing.box, answer.size)),
                    "confidence": thing.score,
                    "attributes": attributes,
                }
            )
    return {"classes": labels_in(answers, doubtful=True), "labels": found}


def uuid_of(image: str) -> str:
    """Return how FiftyOne calls an image: an absolute path whole, any other without its ending."""
    path = PurePath(image)
    if path.is_absolute() or path.suffix.lower() not in IMAGE_SUFFIXES:
        return image
    return path.with_suffix("").as_posix()
