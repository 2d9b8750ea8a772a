"""COCO instances as tools export them, and as our review page saves them (``"reviewed"`` says which photos count)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deixis.data.images_of import annotated_size
from deixis.labels.raw import RawPhoto, RawThing, corners_of
from deixis.reading.plain import expect_list, expect_object


def photos(data: dict[str, Any], path: Path) -> list[RawPhoto]:
    """Return the photos of an instances file. Crowds are left out, for a crowd is not one thing."""
    names: dict[Any, Any] = {}
    for at, item in enumerate(expect_list(data.get("categories"), f"{path}: categories")):
        category = expect_object(item, f"{path}: categories[{at}]")
        names[_key(category.get("id"))] = category.get("name")
    found: dict[Any, RawPhoto] = {}
    images = [
        expect_object(item, f"{path}: images[{at}]")
        for at, item in enumerate(expect_list(data.get("images"), f"{path}: images"))
    ]
    marked = any("reviewed" in image for image in images)  # else the tool keeps no such book: all count
    for at, image in enumerate(images):
        photo = RawPhoto(str(image.get("file_name", image.get("id"))), f"{path}: images[{at}]")
        photo.size = annotated_size(image.get("width"), image.get("height"))
        photo.marked, photo.reviewed = marked, bool(image.get("reviewed", not marked))
        photo.doubt = _share(image.get("doubt")) or 0.0
        found[_key(image.get("id"))] = photo
    for at, item in enumerate(expect_list(data.get("annotations"), f"{path}: annotations")):
        place = f"{path}: annotations[{at}]"
        note = expect_object(item, place)
        owner = found.get(_key(note.get("image_id")))
        if owner is None:
            missing = RawPhoto(f"image {note.get('image_id')!r}", place)
            found[_key(note.get("image_id"))] = owner = missing
        if not note.get("iscrowd"):
            owner.things.append(_thing(note, names, place))
    return list(found.values())


def _thing(note: dict[str, Any], names: dict[Any, Any], place: str) -> RawThing:
    box = note.get("bbox")
    corners = corners_of(box if isinstance(box, list) else [box])
    phrase, sentence = note.get("phrase"), note.get("sentence")
    start, end = note.get("start"), note.get("end")
    span = (start, end) if isinstance(start, int) and isinstance(end, int) else None
    return RawThing(
        names.get(_key(note.get("category_id"))),
        corners,
        place,
        phrase if isinstance(phrase, str) else None,
        sentence if isinstance(sentence, str) else None,
        span,
        _share(note.get("score")),
        bool(note.get("trusted", True)),
    )


def _share(value: Any) -> float | None:
    return float(min(max(value, 0), 1)) if isinstance(value, int | float) and value == value else None


def _key(value: Any) -> Any:
    """Return an id that can be looked up, whatever a file has in its place."""
    return value if isinstance(value, int | str) else repr(value)
