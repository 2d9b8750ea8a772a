"""Predicted phrases meet the phrases of a data set or of a reference file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deixis.errors import BadFileError, DeixisError
from deixis.geometry import scale
from deixis.metrics.files.json_lines import JsonFile, Key, show
from deixis.metrics.files.results import PlainPhrase
from deixis.metrics.grounding.phrases import PhraseCase
from deixis.types import Box, Example, GroundedPhrase, GroundedPhrases


@dataclass(frozen=True, slots=True)
class ReferencePhrase:
    """An annotated phrase: ``caption`` and ``number`` say which one of its image it is."""

    image: str
    caption: int
    number: int
    text: str
    boxes: tuple[Box, ...]
    types: tuple[str, ...] = ()
    sentence: str | None = None
    span: tuple[int, int] | None = None
    size: tuple[int, int] | None = None


def phrases_of_examples(examples: Iterable[Example]) -> list[ReferencePhrase]:
    """Return every phrase of a data set's captions, with or without boxes."""
    return [
        ReferencePhrase(
            image=example.id,
            caption=caption,
            number=number,
            text=sentence.phrase_text(phrase),
            boxes=phrase.boxes,
            types=phrase.types,
            sentence=sentence.text,
            span=sentence.phrase_span(phrase),
            size=example.size,
        )
        for example in examples
        for caption, sentence in enumerate(example.captions)
        for number, phrase in enumerate(sentence.phrases)
    ]


def phrases_of_records(records: Sequence[PlainPhrase], file: JsonFile) -> list[ReferencePhrase]:
    """Return the phrases of a reference file of plain phrase boxes."""
    found = []
    counts: dict[tuple[str, int], int] = {}
    for record in records:
        if record.text is None:
            raise file.error(record.place, "names its phrase by number: a reference needs the phrase's text")
        caption = record.caption or 0
        number = counts.get((record.image, caption), 0)
        counts[record.image, caption] = number + 1
        found.append(ReferencePhrase(record.image, caption, number, record.text, record.boxes, record.types))
    return found


@dataclass(frozen=True, slots=True)
class PhrasePairs:
    """Phrases with what was predicted for them, and what has to be said about the pairing."""

    cases: tuple[PhraseCase, ...]
    notes: tuple[str, ...]


def pair_phrases(
    references: Sequence[ReferencePhrase],
    predictions: Sequence[PlainPhrase] | Sequence[tuple[tuple[Key, ...], GroundedPhrases]],
    file: JsonFile,
    *,
    partial: bool = False,
) -> PhrasePairs:
    """Find the prediction of every annotated phrase.

    A prediction with a sentence is matched by sentence and characters, one with numbers by them, any other by the text
    of the phrase within its image. A phrase with boxes but without a prediction is an error; with ``partial``, a miss.
    """
    images = {phrase.image for phrase in references}
    captions = {(phrase.image, phrase.sentence, phrase.caption) for phrase in references}
    allowed = Counter((image, sentence) for image, sentence, _ in captions)  # people do write one caption twice
    seen: Counter[tuple[str, str | None]] = Counter()
    lookup = _Lookup()
    sizes: dict[str, tuple[int, int]] = {phrase.image: phrase.size for phrase in references if phrase.size is not None}
    for prediction in predictions:
        place, image = (
            (prediction.place, prediction.image)
            if isinstance(prediction, PlainPhrase)
            else (prediction[0], prediction[1].image)
        )
        if image not in images:
            raise file.error(place, f"has an unknown id: the reference has no image {show(image)} in this split")
        if isinstance(prediction, PlainPhrase):
            lookup.add_plain(prediction)
            continue
        key = (image, prediction[1].sentence)
        seen[key] += 1
        if seen[key] > max(allowed[key], 1):
            raise file.error(place, f"is a duplicate: image {show(image)} with the same sentence came before")
        if seen[key] == 1:
            lookup.add_grounded(prediction[1], sizes.get(image))
    cases, missing = [], []
    used: set[int] = set()
    for phrase in references:
        ranked = lookup.find(phrase, used)
        if ranked is None and phrase.boxes:
            missing.append(phrase)
        cases.append(PhraseCase(phrase.image, phrase.text, phrase.boxes, ranked or (), phrase.types))
    if missing and not partial:
        first = missing[0]
        absent = sorted({p.image for p in missing} - lookup.images)
        what = f"image {show(absent[0])} is missing" if absent else f"image {show(first.image)} lacks a phrase"
        raise BadFileError(
            f"{file.path}: {what}: {len(missing)} of {len(references)} phrases have no prediction (first: "
            f"{show(first.text)}, caption {first.caption} of image {show(first.image)}); --partial lets them miss"
        )
    notes = []
    if missing:
        notes.append(f"partial: {len(missing)} of {len(references)} phrases have no prediction and count as misses")
    spare = len(lookup.entries) - len(used)
    strict = [entry for at, entry in enumerate(lookup.entries) if at not in used and entry.place is not None]
    if strict and strict[0].place is not None:
        raise file.error(strict[0].place, f"names a phrase the reference does not have: {strict[0].what}")
    if spare:
        notes.append(f"{spare} predicted phrases are no phrases of the reference and were not scored")
    if lookup.scaled:
        notes.append(f"the boxes of {len(lookup.scaled)} images were scaled to the size the reference has them in")
    return PhrasePairs(tuple(cases), tuple(notes))


@dataclass(frozen=True, slots=True)
class _Entry:
    ranked: tuple[Box, ...]
    what: str
    place: tuple[Key, ...] | None = None
    """Set where a prediction without a reference phrase is an error."""


class _Lookup:
    """Predictions by everything they may be found by; positions in ``entries`` are kept to know which were used."""

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self.images: set[str] = set()
        self.scaled: set[str] = set()
        self._by: dict[tuple[object, ...], int] = {}

    def add_plain(self, record: PlainPhrase) -> None:
        self.images.add(record.image)
        if record.phrase is not None:
            what, key = f"number {record.phrase} of caption {record.caption}", (record.caption, record.phrase)
            self._by[("number", record.image, *key)] = len(self.entries)
        elif record.caption is not None:
            what = f"{show(record.text)} in caption {record.caption}"
            self._by["text", record.image, record.caption, _plain(record.text)] = len(self.entries)
        else:
            what = show(record.text)
            self._by["text", record.image, None, _plain(record.text)] = len(self.entries)
        self.entries.append(_Entry(record.boxes, what, record.place))

    def add_grounded(self, result: GroundedPhrases, size: tuple[int, int] | None) -> None:
        self.images.add(result.image)
        for phrase in result.phrases:
            ranked = _ranked(phrase)
            if size is not None and size != result.size:
                self.scaled.add(result.image)
                ranked = scaled(ranked, result.size, size)
            if result.sentence is not None and phrase.start is not None:
                key: tuple[object, ...] = ("span", result.image, result.sentence, phrase.start, phrase.end)
            elif result.sentence is not None:
                key = ("sentence", result.image, result.sentence, _plain(phrase.text))
            else:
                key = ("text", result.image, None, _plain(phrase.text))
            if key in self._by:
                raise DeixisError(f"image {result.image!r} has two predictions for the phrase {phrase.text!r}")
            self._by[key] = len(self.entries)
            self.entries.append(_Entry(ranked, phrase.text))

    def find(self, phrase: ReferencePhrase, used: set[int]) -> tuple[Box, ...] | None:
        text = _plain(phrase.text)
        keys: list[tuple[object, ...]] = [("number", phrase.image, phrase.caption, phrase.number)]
        if phrase.sentence is not None and phrase.span is not None:
            keys.append(("span", phrase.image, phrase.sentence, *phrase.span))
            keys.append(("sentence", phrase.image, phrase.sentence, text))
        keys += [("text", phrase.image, phrase.caption, text), ("text", phrase.image, None, text)]
        at = next((self._by[key] for key in keys if key in self._by), None)
        if at is None:
            return None
        used.add(at)
        return self.entries[at].ranked


def _ranked(phrase: GroundedPhrase) -> tuple[Box, ...]:
    return phrase.ranked or phrase.boxes


def scaled(boxes: tuple[Box, ...], old: tuple[int, int], new: tuple[int, int]) -> tuple[Box, ...]:
    """Return boxes of an image of size ``old`` as they lie in the same image at size ``new``."""
    if not boxes:
        return ()
    moved = scale(np.array(boxes, dtype=np.float64), old, new)
    return tuple((float(x1), float(y1), float(x2), float(y2)) for x1, y1, x2, y2 in moved)


def _plain(text: str | None) -> str:
    return " ".join((text or "").lower().split())
