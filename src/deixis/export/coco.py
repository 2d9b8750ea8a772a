"""COCO's JSON: instances (images, categories, boxes), results to be evaluated, and caption results.

Without a reference, images are numbered in the order they come in and categories by the alphabet, alike in all three,
so that results can be loaded into the instances of the same answers. With the instances or captions file of a dataset,
its ids are used, and what it has no category for is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from deixis.errors import BadFileError, DeixisError
from deixis.export.review import doubt, in_review_order
from deixis.export.things import Answer, labels_in, only_photos, text_of, things_of
from deixis.reading.plain import expect_list, expect_object, read_json
from deixis.types import GroundedCaption
from deixis.types.sentence import Box


@dataclass(frozen=True, slots=True)
class CocoIds:
    """The numbers of images and categories; ``images`` knows an image by every name it may be called by."""

    images: dict[str, int | str]
    categories: dict[str, int]
    source: str = ""

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> CocoIds:
        """Number the images and labels of answers."""
        names = dict.fromkeys(answer.image for answer in answers)
        labels = labels_in(answers, doubtful=True)
        return cls(
            {name: number for number, name in enumerate(names, start=1)},
            {label: number for number, label in enumerate(labels, start=1)},
        )

    @classmethod
    def read(cls, path: Path) -> CocoIds:
        """Take the numbers of a dataset's instances or captions file."""
        data = expect_object(read_json(path), str(path))
        images: dict[str, int | str] = {}
        for at, image in enumerate(expect_list(data.get("images"), f"{path}: images")):
            entry = expect_object(image, f"{path}: images[{at}]")
            number = entry.get("id")
            if not isinstance(number, int | str):
                raise BadFileError(f"{path}: images[{at}].id should be a number or text, got {number!r}")
            name = str(entry.get("file_name", ""))
            for called in (str(number), name, PurePath(name).stem):
                if called:
                    images.setdefault(called, number)
        categories = {}
        for at, category in enumerate(expect_list(data.get("categories", []), f"{path}: categories")):
            entry = expect_object(category, f"{path}: categories[{at}]")
            categories[str(entry.get("name"))] = int(entry.get("id", -1))
        return cls(images, categories, str(path))

    def image(self, name: str) -> int | str:
        """Return the number of an image called by its id, file name, bare name, or a name that ends in its number."""
        stem = PurePath(name).stem
        digits = re.search(r"(\d+)$", stem)
        for called in (name, PurePath(name).name, stem, str(int(digits[1])) if digits else ""):
            if called in self.images:
                return self.images[called]
        raise DeixisError(f"{self.source} has no image {name!r}: were the predictions made on another dataset?")


def results(answers: Sequence[Answer], ids: CocoIds | None = None) -> list[dict[str, Any]]:
    """Return boxes for ``COCO.loadRes`` and ``COCOeval(…, "bbox")``; things without a category are left out."""
    ids = ids or CocoIds.of(answers)
    return [
        {
            "image_id": ids.image(answer.image),
            "category_id": ids.categories[thing.label],
            "bbox": as_xywh(thing.box),
            "score": thing.score,
        }
        for answer in only_photos(answers, "coco-results")
        for thing in things_of(answer)
        if thing.label in ids.categories
    ]


def captions(answers: Sequence[Answer], ids: CocoIds | None = None) -> list[dict[str, Any]]:
    """Return the sentences as COCO caption results, one for each image."""
    ids = ids or CocoIds.of(answers)
    found = [
        {"image_id": ids.image(answer.image), "caption": answer.text}
        for answer in only_photos(answers, "coco-captions")
        if isinstance(answer, GroundedCaption)
    ]
    if not found:
        raise DeixisError(
            "there are no captions among the predictions, only phrases: coco-captions has nothing to hold"
        )
    return found


def dataset(answers: Sequence[Answer], ids: CocoIds | None = None) -> dict[str, Any]:
    """Return an instances file. What is doubted is in it too, with ``"trusted": false``."""
    ids = ids or CocoIds.of(answers)
    images: dict[int | str, dict[str, Any]] = {}
    annotations: list[dict[str, Any]] = []
    for answer in only_photos(answers, "coco"):
        number = ids.image(answer.image)
        width, height = answer.size
        images.setdefault(number, {"id": number, "file_name": answer.image, "width": width, "height": height})
        for thing in things_of(answer, doubtful=True):
            if thing.label not in ids.categories:
                continue
            x1, y1, x2, y2 = thing.box
            annotation: dict[str, Any] = {
                "id": len(annotations) + 1,
                "image_id": number,
                "category_id": ids.categories[thing.label],
                "bbox": as_xywh(thing.box),
                "area": (x2 - x1) * (y2 - y1),
                "segmentation": [[x1, y1, x2, y1, x2, y2, x1, y2]],
                "iscrowd": 0,
                "score": thing.score,
                "trusted": thing.trusted,
                "phrase": thing.text,
            }
            if thing.span is not None:
                annotation |= {"sentence": text_of(answer), "start": thing.span[0], "end": thing.span[1]}
            annotations.append(annotation)
    return {
        "info": {"description": "Boxes found by Deixis", "version": "1.0"},
        "licenses": [],
        "images": list(images.values()),
        "categories": [{"id": number, "name": name} for name, number in ids.categories.items()],
        "annotations": annotations,
    }


def labels(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return draft labels for review: an instances file whose most doubtful images come first.

    Each image carries its ``doubt`` (0 to 1) and the phrases that were not found; within an image the least sure
    boxes come first.
    """
    ordered = in_review_order(answers)
    data = dataset(ordered)
    worst: dict[str, float] = {}
    absent: dict[str, list[str]] = {}
    for answer in ordered:
        worst[answer.image] = max(worst.get(answer.image, 0.0), doubt(answer))
        if not isinstance(answer, GroundedCaption):
            missing = [phrase.text for phrase in answer.phrases if not phrase.found or not phrase.boxes]
            absent.setdefault(answer.image, []).extend(missing)
    for image in data["images"]:
        name = image["file_name"]
        image |= {"doubt": worst[name], "not_found": absent.get(name, [])}
    order = {image["id"]: at for at, image in enumerate(data["images"])}
    data["annotations"].sort(key=lambda item: (order[item["image_id"]], item["score"]))
    return data


def as_xywh(box: Box) -> list[float]:
    """Return [x, y, width, height]."""
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]
