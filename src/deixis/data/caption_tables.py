"""Captions of photos in files people have: CSV, TSV, JSON, JSON lines; each row names a photo and says a sentence.

Tables may have a header or not, and be cut by commas, semicolons, tabs or bars. Known from public datasets:
``image,caption`` (Flickr8k as it is passed around), ``image.jpg#0<tab>caption`` (its original),
``image_name| comment_number| comment`` (Flickr30k).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deixis.data.dataset import Problems
from deixis.data.records import BROKEN_RECORD, CAPTION_KEYS
from deixis.errors import BadFileError
from deixis.images import IMAGE_SUFFIXES
from deixis.reading.files import read_text
from deixis.reading.plain import parse_json

TABLES = (".csv", ".tsv", ".txt")
JSONS = (".json", ".jsonl")
IMAGE_KEYS = ("file_name", "filename", "image", "image_name", "file", "photo", "path", "name")
TEXT_KEYS = (*CAPTION_KEYS, "sentence", "comment", "description", "title")

_NUMBERED = re.compile(r"#\d+$")

Row = tuple[str, str, dict[str, Any]]
"""Place in the file, the photo's name, and a record for :func:`deixis.data.records.read_record`."""


def read_captions(file: Path, problems: Problems) -> list[Row]:
    """Return the rows of a file of captions; rows that cannot be used are noted."""
    text = read_text(file)
    if file.suffix in TABLES:
        return _table(text, file, problems)
    return _objects(_json(text, file, problems), file, problems)


def _json(text: str, file: Path, problems: Problems) -> Any:
    if file.suffix == ".json":
        return parse_json(text, str(file))
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                found.append(parse_json(line, f"{file}, line {number}"))
            except BadFileError as error:
                problems.note(BROKEN_RECORD, str(error))
    return found


def _objects(data: Any, file: Path, problems: Problems) -> list[Row]:
    """Read ``{"a.jpg": "A caption.", …}`` (or lists of captions), or a list of objects with photo and caption."""
    if isinstance(data, dict):
        return [(f"{file}: {name}", name, {"captions": value}) for name, value in data.items()]
    if not isinstance(data, list):
        raise BadFileError(f'{file} should be {{"photo.jpg": "caption", …}} or a list of objects')
    rows: list[Row] = []
    for at, item in enumerate(data):
        place = f"{file}, entry {at + 1}"
        record = item if isinstance(item, dict) else {}
        name, said = _first(record, IMAGE_KEYS), _first(record, TEXT_KEYS)
        if isinstance(name, str) and name.strip():
            rows.append((place, name.strip(), {**record, "captions": said}))
        else:
            problems.note(BROKEN_RECORD, f"{place}: names no photo (as {', '.join(IMAGE_KEYS[:3])} …)")
    return rows


def _table(text: str, file: Path, problems: Problems) -> list[Row]:
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        return []
    cut = _delimiter(lines[0], file)
    if cut == "\t":
        cells = [line.rstrip("\r").split("\t") for line in text.split("\n")]  # quotes are quotes there
    else:
        try:
            cells = list(csv.reader(io.StringIO(text), delimiter=cut, skipinitialspace=True, strict=True))
        except csv.Error as error:
            raise BadFileError(f"{file}: broken table: {error}") from error
    numbered = [(at, row) for at, row in enumerate(cells, 1) if any(cell.strip() for cell in row)]
    if not numbered:  # nothing but marks and empty quotes
        return []
    names = [cell.strip().lower() for cell in numbered[0][1]]
    image, caption, split, header = _columns(names, file)
    last = not header or caption == len(names) - 1
    rows: list[Row] = []
    for at, row in numbered[1 if header else 0 :]:
        place = f"{file}, row {at}"
        if len(row) <= max(image, caption) or not row[image].strip():
            problems.note(BROKEN_RECORD, f"{place} should have a photo and a caption: {' '.join(row)!r}"[:300])
            continue
        # the last column may hold commas that nobody quoted
        said = f"{cut} ".join(cell.strip() for cell in row[caption:]) if last else row[caption]
        record: dict[str, Any] = {"captions": said}
        if split is not None and split < len(row):
            record["split"] = row[split].strip()
        rows.append((place, _NUMBERED.sub("", row[image].strip()), record))
    return rows


def _delimiter(line: str, file: Path) -> str:
    """Return what cuts the first line: tabs before anything else, then what a caption is least likely to hold."""
    found = next((mark for mark in ("\t", "|", ";", ",") if mark in line), None)
    if found is None:
        raise BadFileError(f"{file}, first line: no tab, comma, semicolon or bar between photo and caption: {line!r}")
    if found in ("|", ";") and "," in line and line.index(",") < line.index(found):
        return ","
    return found


def _columns(names: Sequence[str], file: Path) -> tuple[int, int, int | None, bool]:
    """Return the columns of photo, caption and split, and whether the first row is a header."""
    if any(_NUMBERED.sub("", name).endswith(IMAGE_SUFFIXES) for name in names):
        image = next(at for at, name in enumerate(names) if _NUMBERED.sub("", name).endswith(IMAGE_SUFFIXES))
        if image == len(names) - 1:
            raise BadFileError(f"{file}: the photo should stand before its caption, got {' '.join(names)!r}"[:300])
        numbered = len(names) > image + 2 and names[image + 1].isdigit()  # which of the photo's captions it is
        return image, image + (2 if numbered else 1), None, False
    image_at = next((names.index(key) for key in IMAGE_KEYS if key in names), None)
    text_at = next((names.index(key) for key in TEXT_KEYS if key in names), None)
    if image_at is None or text_at is None:
        raise BadFileError(
            f"{file}: the first row should name the columns (photo: {', '.join(IMAGE_KEYS[:4])} …; caption: "
            f"{', '.join(TEXT_KEYS[:3])} …) or be a photo and its caption, got {', '.join(names)!r}"[:400]
        )
    return image_at, text_at, names.index("split") if "split" in names else None, True


def _first(record: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((record[key] for key in keys if record.get(key) is not None), None)
