"""Label Studio: tasks as it exports them (JSON), with the annotations of people; or drafts, with predictions alone."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from deixis.data.images_of import annotated_size
from deixis.labels.raw import RawPhoto, RawThing, corners_of
from deixis.reading.plain import expect_list, expect_object


def photos(data: list[Any], path: Path) -> list[RawPhoto]:
    """Return the photos of tasks: the newest annotation that was not cancelled; without any, the prediction."""
    tasks = [expect_object(item, f"{path}: task {at}") for at, item in enumerate(data)]
    annotated = any(_notes(task) for task in tasks)
    found: dict[str, RawPhoto] = {}
    for at, task in enumerate(tasks):
        place = f"{path}: task {at}"
        facts = expect_object(task.get("data"), f"{place}: data")
        notes = _notes(task)
        given = notes or expect_list(task.get("predictions") or [], f"{place}: predictions")
        name = image_name(facts)
        photo = found.setdefault(name, RawPhoto(name, place, shares=True, reviewed=False))
        photo.reviewed = photo.reviewed or bool(notes) or not annotated
        if given and (notes or not annotated):
            newest = expect_object(given[-1], f"{place}: annotation")
            sentence = facts.get("sentence")
            _add(photo, expect_list(newest.get("result"), f"{place}: result"), sentence, place)
    return list(found.values())


def image_name(facts: dict[str, Any]) -> str:
    """Return what a task calls its photo: our own name if it is there, else the end of its address."""
    own = facts.get("image_id")
    if isinstance(own, str):
        return own
    address = next((value for key, value in facts.items() if isinstance(value, str) and key != "sentence"), "")
    try:
        parts = urlsplit(address)
    except ValueError:  # a bracket that opens no IPv6 address
        return address
    named = parse_qs(parts.query).get("d", [parts.path])[0]
    if "/upload/" in named:  # Label Studio puts eight letters and a dash before the name of what was uploaded
        return PurePosixPath(unquote(named)).name.partition("-")[2] or named
    return unquote(named).lstrip("/")


def _notes(task: dict[str, Any]) -> list[Any]:
    notes = task.get("annotations") or task.get("completions") or []
    if not isinstance(notes, list):
        return []
    return [note for note in notes if isinstance(note, dict) and not note.get("was_cancelled")]


def _add(photo: RawPhoto, result: list[Any], sentence: Any, place: str) -> None:
    """Add the rectangles of an annotation; the text areas beside them, of the same id, hold their phrases."""
    parts = [part for part in result if isinstance(part, dict) and isinstance(part.get("value"), dict)]
    phrases = {
        repr(part.get("id")): part["value"]["text"]  # which may be anything in a damaged file
        for part in parts
        if part.get("type") == "textarea" and part["value"].get("text")
    }
    for part in parts:
        if part.get("type") != "rectanglelabels":
            continue
        value = part["value"]
        photo.size = annotated_size(part.get("original_width"), part.get("original_height")) or photo.size
        sides = [value.get(side) for side in ("x", "y", "width", "height")]
        labels = value.get("rectanglelabels")
        told = phrases.get(repr(part.get("id")))
        phrase = told[0] if isinstance(told, list) and told and isinstance(told[0], str) else None
        at = sentence.find(phrase) if phrase and isinstance(sentence, str) else -1
        photo.things.append(
            RawThing(
                labels[0] if isinstance(labels, list) and labels else None,
                corners_of(sides, per=100),
                f"{place}: result {part.get('id')}",
                phrase,
                sentence if at >= 0 and phrase != sentence else None,
                (at, at + len(phrase)) if at >= 0 and phrase and phrase != sentence else None,
            )
        )
