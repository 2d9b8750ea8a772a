"""Corrected labels as a dataset: captions with phrases and their boxes, one photo a line, beside the photos.

``deixis.data.photo_folder`` reads the file, and recipes that say ``data.supervision: true`` learn from its boxes. A box
that a caption names teaches the phrase in its sentence; any other teaches its label, said alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deixis.atomic import write_text
from deixis.errors import DeixisError
from deixis.export.things import label_of
from deixis.labels.read import Album, LabelledThing, PhotoLabels


def record(photo: PhotoLabels) -> dict[str, Any]:
    """Return a photo as a line of the dataset (:func:`deixis.data.records.read_record`)."""
    captions: dict[str, int] = {}
    phrases: dict[tuple[int, int, int], dict[str, Any]] = {}
    for thing in photo.things:
        text, (start, end) = _said(thing)
        number = captions.setdefault(text, len(captions))
        phrase = phrases.setdefault(
            (number, start, end),
            {"caption": number, "start": start, "end": end, "label": thing.label, "boxes": []},
        )
        box = [round(side, 2) for side in thing.box]
        if box not in phrase["boxes"]:
            phrase["boxes"].append(box)
    width, height = photo.size
    return {
        "file_name": photo.image,
        "width": width,
        "height": height,
        "captions": list(captions),
        "phrases": list(phrases.values()),
    }


def _said(thing: LabelledThing) -> tuple[str, tuple[int, int]]:
    """Return the sentence that names a thing and where: its caption, or its label alone.

    A label that is neither the phrase nor its noun was changed by hand: then the caption no longer speaks of this box.
    """
    phrase = thing.phrase
    fits = phrase is not None and thing.label in (phrase, label_of(phrase))
    if fits and thing.sentence is not None and thing.span is not None:
        start, end = thing.span
        if 0 <= start < end <= len(thing.sentence) and thing.sentence[start:end].strip():
            return thing.sentence, (start, end)
    text = phrase if fits and phrase is not None and phrase.strip() else thing.label
    return text, (0, len(text))


def write_dataset(path: Path, photos: Iterable[PhotoLabels], album: Album) -> int:
    """Write the photos that have a box, and return how many; the file must lie in the folder of the photos."""
    if path.suffix != ".jsonl" or path.absolute().parent.resolve() != album.folder.resolve():
        raise DeixisError(
            f"{path} should be a .jsonl file in the folder of the photos, such as {album.folder / 'corrected.jsonl'}: "
            "training looks for the photos beside it"
        )
    lines = [json.dumps(record(photo), ensure_ascii=False) + "\n" for photo in photos if photo.things]
    if not lines:
        raise DeixisError("the corrected labels have no box left: there is nothing to learn from")
    write_text(path, "".join(lines))
    return len(lines)
