"""Results as they lie in files: our own JSON, COCO caption results, plain phrase boxes and proposals.

Which of them a file is, is told by its shape. Every record remembers its place, so that what is wrong with it, or with
how it meets the reference, can be named by line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from deixis.errors import BadFileError
from deixis.metrics.files.grounding import is_grounding_submission
from deixis.metrics.files.json_lines import JsonFile, Key, show
from deixis.types import Box, GroundedCaption, GroundedPhrases

Format = Literal["grounding submission", "captions", "phrases", "COCO captions", "plain phrase boxes", "dense captions"]

Result = TypeVar("Result", GroundedCaption, GroundedPhrases)


@dataclass(frozen=True, slots=True)
class PlainPhrase:
    """A record of plain phrase boxes: ranked boxes for a phrase named by its text, or by caption and position."""

    place: tuple[Key, ...]
    image: str
    text: str | None
    caption: int | None
    phrase: int | None
    boxes: tuple[Box, ...]
    types: tuple[str, ...] = ()


def records_of(file: JsonFile) -> list[tuple[tuple[Key, ...], Any]]:
    """Return the records of a file with their places: a list, lines, or one object alone."""
    if isinstance(file.data, list):
        return [((at,), value) for at, value in enumerate(file.data)]
    return [((), file.data)]


def recognise(file: JsonFile) -> Format:
    """Return what a results file is; anything else is an error that says what was found."""
    if is_grounding_submission(file.data):
        first = next(iter(file.data["results"].values()), None)
        dense = isinstance(first, list) and first and isinstance(first[0], dict) and "timestamp" in first[0]
        return "dense captions" if dense else "grounding submission"
    records = records_of(file)
    if not records:
        raise file.error([], "is an empty list: there is nothing to score")
    place, first = records[0]
    if isinstance(first, dict):
        if "deixis" in first:
            if first.get("kind") in ("caption", "phrases"):
                return "captions" if first["kind"] == "caption" else "phrases"
            raise file.error(place, f'has "kind": {show(first.get("kind"))}, expected "caption" or "phrases"')
        if "caption" in first and "image_id" in first:
            return "COCO captions"
        if ("image" in first or "image_id" in first) and ("boxes" in first or "box" in first):
            return "plain phrase boxes"
    found = f"the keys {', '.join(map(show, list(first)[:6]))}" if isinstance(first, dict) else show(first)
    raise file.error(
        place,
        "is in none of the formats scored here (our captions or phrases, COCO caption results, ActivityNet-Entities or "
        f"GVD submissions, plain phrase boxes): it has {found}",
    )


def read_captions(file: JsonFile) -> dict[str, tuple[tuple[Key, ...], GroundedCaption]]:
    """Read our captions, one for each image or segment."""
    found: dict[str, tuple[tuple[Key, ...], GroundedCaption]] = {}
    for place, value in records_of(file):
        result = _ours(file, place, value, GroundedCaption.from_json)
        if result.image in found:
            raise file.error([*place, "image"], f"is a duplicate id: {show(result.image)} came before")
        found[result.image] = (place, result)
    return found


def read_phrases(file: JsonFile) -> list[tuple[tuple[Key, ...], GroundedPhrases]]:
    """Read our phrases; an image may come several times, with other sentences."""
    return [(place, _ours(file, place, value, GroundedPhrases.from_json)) for place, value in records_of(file)]


def read_coco_captions(file: JsonFile) -> dict[str, tuple[tuple[Key, ...], str]]:
    """Read ``[{"image_id": …, "caption": …}, …]``."""
    found: dict[str, tuple[tuple[Key, ...], str]] = {}
    for place, value in records_of(file):
        record = file.object_at(value, place, "image_id and caption")
        image = file.id_at(record.get("image_id"), [*place, "image_id"])
        if image in found:
            raise file.error([*place, "image_id"], f"is a duplicate id: {show(image)} came before")
        found[image] = (place, file.text_at(record.get("caption"), [*place, "caption"], "a caption"))
    return found


def read_plain_phrases(file: JsonFile) -> list[PlainPhrase]:
    """Read ``{"image", "phrase", "boxes"}`` records.

    ``phrase`` is the phrase's text, or its number within caption ``caption``, counting from 0. ``boxes`` are ranked
    best first (``box``: a single one). As a reference the same form holds the phrase's boxes, and ``types``.
    """
    found = []
    seen: set[tuple[str, str | None, int | None, int | None]] = set()
    for place, value in records_of(file):
        record = file.object_at(value, place, "image, phrase and boxes")
        key = "image" if "image" in record else "image_id"
        image = file.id_at(record.get(key), [*place, key])
        name = record.get("phrase")
        number = name if isinstance(name, int) and not isinstance(name, bool) else None
        text = None if number is not None else file.text_at(name, [*place, "phrase"], "a phrase or its number")
        caption = record.get("caption")
        if caption is not None or number is not None:
            caption = file.whole_at(caption, [*place, "caption"], "the number of a caption")
        if (image, text, caption, number) in seen:
            raise file.error(place, f"is a duplicate: image {show(image)}, phrase {show(name)} came before")
        seen.add((image, text, caption, number))
        boxes = [record["box"]] if "box" in record else file.list_at(record.get("boxes"), [*place, "boxes"], "boxes")
        at = "box" if "box" in record else "boxes"
        shapes = tuple(
            file.box_at(box, [*place, at] if at == "box" else [*place, at, n]) for n, box in enumerate(boxes)
        )
        types = file.list_at(record.get("types", []), [*place, "types"], "types")
        found.append(PlainPhrase(place, image, text, caption, number, shapes, tuple(map(str, types))))
    return found


def read_proposals(file: JsonFile) -> dict[str, tuple[Box, ...]]:
    """Read the regions of each photo, ``{"image", "boxes"}`` records, for the upper bound."""
    found: dict[str, tuple[Box, ...]] = {}
    for place, value in records_of(file):
        record = file.object_at(value, place, "image and boxes")
        key = "image" if "image" in record else "id"
        image = file.id_at(record.get(key), [*place, key])
        if image in found:
            raise file.error(place, f"is a duplicate: the proposals of image {show(image)} came before")
        boxes = file.list_at(record.get("boxes"), [*place, "boxes"], "boxes")
        found[image] = file.boxes_at(boxes, [*place, "boxes"], longer=True)
    return found


def _ours(file: JsonFile, place: tuple[Key, ...], value: Any, read: Callable[[Any], Result]) -> Result:
    try:
        return read(value)
    except BadFileError as error:
        image = f" (image {show(value['image'])})" if isinstance(value, dict) and "image" in value else ""
        raise file.error(place, f"{error}{image}".strip()) from error
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise file.error(place, f"is not our JSON: {error}") from error
