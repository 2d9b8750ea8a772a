"""Records in plain JSON, as metadata.jsonl and WebDataset shards carry them: captions, phrases with boxes, objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deixis.data.boxes import usable_box
from deixis.data.dataset import Problems
from deixis.data.files import EMPTY_CAPTION
from deixis.data.images_of import annotated_size
from deixis.data.sentences import sentence_with_phrases
from deixis.types.example import LabelledBox
from deixis.types.sentence import Box, Phrase, Sentence

NOT_IN_CAPTION = "phrase that is not in its caption"
BROKEN_RECORD = "broken record"

CAPTION_KEYS = ("text", "caption", "captions", "sentences")


def read_record(
    record: Mapping[str, Any], size: tuple[int, int] | None, problems: Problems, place: str
) -> tuple[tuple[Sentence, ...], tuple[LabelledBox, ...]]:
    """Return captions and objects of one record.

    Args:
        record: ``text`` (or ``caption``, ``captions``): one caption or a list. ``phrases``: a list of objects with
            ``text`` or ``start`` and ``end`` in characters, ``boxes`` (or ``box``) as x1 y1 x2 y2, and optionally
            ``caption`` (which of several, from 0), ``entity``, ``label``. ``objects``: ``bbox`` as x y width height
            and ``categories``, as Hugging Face writes detection data. ``width`` and ``height``: the annotated size.
        size: The size of the image file; boxes are scaled to it from the annotated size.
        problems: Takes notes.
        place: File and line, for the notes.
    """
    annotated = annotated_size(record.get("width"), record.get("height"))
    texts = _captions(record, problems, place)
    spans: list[list[tuple[int, int, Phrase]]] = [[] for _ in texts]
    objects: list[LabelledBox] = []
    phrases = record.get("phrases") or []
    if not isinstance(phrases, list):
        problems.note(BROKEN_RECORD, f"{place}: phrases should be a list")
        phrases = []
    for at, item in enumerate(phrases):
        where = f"{place}: phrases[{at}]"
        found = _place_phrase(item, texts)
        if found is None:
            problems.note(NOT_IN_CAPTION, f"{where}: {item!r}"[:300])
            continue
        caption, start, end = found
        boxes = _boxes(item, annotated, size, problems, where)
        entity, label = item.get("entity"), item.get("label")
        phrase = Phrase(
            0,
            0,
            str(entity) if entity is not None else None,
            boxes=boxes,
            frames=(0,) * len(boxes),
            label=str(label) if label is not None else None,
        )
        spans[caption].append((start, end, phrase))
        objects += [LabelledBox(box, str(label or entity or texts[caption][start:end])) for box in boxes]
    objects += _objects(record.get("objects"), annotated, size, problems, place)
    captions = tuple(sentence_with_phrases(text, own)[0] for text, own in zip(texts, spans, strict=True) if text)
    return captions, tuple(objects)


def _captions(record: Mapping[str, Any], problems: Problems, place: str) -> list[str]:
    """Return the captions in their places; an empty one stays, as an empty string, so that indices hold."""
    value = next((record[key] for key in CAPTION_KEYS if record.get(key) is not None), None)
    texts: list[str] = []
    for text in value if isinstance(value, list) else [] if value is None else [value]:
        if isinstance(text, dict):
            text = text.get("raw")
        if not isinstance(text, str) or not text.strip():
            problems.note(EMPTY_CAPTION, place)
            texts.append("")
        else:
            texts.append(text)
    if not texts:
        problems.note(EMPTY_CAPTION, place)
    return texts


def _place_phrase(item: Any, texts: list[str]) -> tuple[int, int, int] | None:
    """Return caption, start and end of a phrase, from its characters or by looking for its text."""
    if not isinstance(item, dict):
        return None
    given = item.get("caption", 0)
    if not isinstance(given, int) or not 0 <= given < len(texts):
        return None
    text, start, end = texts[given], item.get("start"), item.get("end")
    if isinstance(start, int) and isinstance(end, int):
        return (given, start, end) if 0 <= start < end <= len(text) and text[start:end].strip() else None
    words = item.get("text")
    if not isinstance(words, str) or not words.strip():
        return None
    start = text.lower().find(words.lower())
    return (given, start, start + len(words)) if start >= 0 else None


def _boxes(
    item: Mapping[str, Any],
    annotated: tuple[int, int] | None,
    size: tuple[int, int] | None,
    problems: Problems,
    place: str,
) -> tuple[Box, ...]:
    values = item.get("boxes")
    if values is None:
        values = [item["box"]] if item.get("box") is not None else []
    if not isinstance(values, list) or not all(isinstance(value, list) for value in values):
        problems.note(BROKEN_RECORD, f"{place}.boxes should be a list of x1 y1 x2 y2")
        return ()
    boxes = (usable_box(value, annotated, size, problems, place) for value in values)
    return tuple(box for box in boxes if box is not None)


def _objects(
    value: Any, annotated: tuple[int, int] | None, size: tuple[int, int] | None, problems: Problems, place: str
) -> list[LabelledBox]:
    if value is None:
        return []
    boxes = value.get("bbox") if isinstance(value, dict) else None
    labels = (value.get("categories") or value.get("category") or []) if isinstance(value, dict) else []
    if not isinstance(boxes, list) or not isinstance(labels, list):
        problems.note(BROKEN_RECORD, f"{place}: objects should have bbox and categories, two lists")
        return []
    found = []
    for at, box in enumerate(boxes):
        corners = box if isinstance(box, list) else [box]
        if len(corners) == 4 and all(isinstance(v, int | float) for v in corners):
            x, y, width, height = corners
            corners = [x, y, x + width, y + height]
        usable = usable_box(corners, annotated, size, problems, f"{place}: objects.bbox[{at}]")
        if usable is not None:
            found.append(LabelledBox(usable, str(labels[at]) if at < len(labels) else ""))
    return found
