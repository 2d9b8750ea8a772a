"""Reading text, JSON and image folders so that every failure names the file and the place in it."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from pathlib import Path
from typing import Any

from deixis.data.dataset import Problems
from deixis.errors import BadFileError
from deixis.images import IMAGE_SUFFIXES

MISSING_IMAGE = "missing image"
DUPLICATE_ID = "two images with one id"
EMPTY_CAPTION = "empty caption"

MAX_TEXT_BYTES = 4 * 2**30


def read_bytes(path: Path, *, limit: int = MAX_TEXT_BYTES) -> bytes:
    """Return a file's bytes, unpacked if it ends in ``.gz``; more than ``limit`` bytes are refused."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as packed:
                data = packed.read(limit + 1)
        else:
            with path.open("rb") as file:
                data = file.read(limit + 1)
    except FileNotFoundError as error:
        raise BadFileError(f"there is no file {path}") from error
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise BadFileError(f"{path} cannot be read: {error}") from error
    if len(data) > limit:
        raise BadFileError(f"{path} holds more than {limit:,} bytes, more than a file of its kind can need")
    return data


def read_text(path: Path, *, limit: int = MAX_TEXT_BYTES) -> str:
    """Return a file as text; it must be UTF-8."""
    data = read_bytes(path, limit=limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadFileError(f"{path}, line {line}: not UTF-8 text (byte {data[error.start]:#04x})") from error


def read_json(path: Path) -> Any:
    """Return a JSON file's value, plain or gzip."""
    return parse_json(read_text(path), str(path))


def parse_json(text: str, place: str) -> Any:
    """Parse JSON; what cannot be parsed is an error that names the place."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadFileError(f"{place}, line {error.lineno}, column {error.colno}: broken JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise BadFileError(f"{place}: broken JSON: {error}") from error


def expect_list(value: Any, place: str) -> list[Any]:
    """Return ``value`` if it is a list."""
    if not isinstance(value, list):
        raise BadFileError(f"{place} should be a list, not {_kind(value)}")
    return value


def expect_object(value: Any, place: str) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object."""
    if not isinstance(value, dict):
        raise BadFileError(f"{place} should be an object, not {_kind(value)}")
    return value


def expect_text(value: Any, place: str) -> str:
    """Return ``value`` if it is a string."""
    if not isinstance(value, str):
        raise BadFileError(f"{place} should be text, not {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", type(None): "null", bool: "true or false"}
    return names.get(type(value), f"{value!r}"[:60])


def id_list(path: Path) -> tuple[str, ...]:
    """Return the ids of a split list: the last word of every line that is not empty."""
    return tuple(dict.fromkeys(line.split()[-1] for line in read_text(path).splitlines() if line.strip()))


class ImageFolder:
    """The images of a folder by the name without its ending; two files of one name are noted."""

    def __init__(self, folder: Path | None, problems: Problems) -> None:
        self.folder = folder
        self._names: dict[str, str] = {}
        if folder is None:
            return
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError as error:
            raise BadFileError(f"{folder} cannot be read: {error}") from error
        for name in names:
            stem, suffix = os.path.splitext(name)
            if suffix.lower() not in IMAGE_SUFFIXES:
                continue
            if stem in self._names:
                problems.note(DUPLICATE_ID, f"{folder}: {self._names[stem]} and {name}")
            else:
                self._names[stem] = name

    def get(self, stem: str) -> Path | None:
        """Return the file of an id, or None."""
        name = self._names.get(stem)
        return self.folder / name if name is not None and self.folder is not None else None

    def __len__(self) -> int:
        return len(self._names)


def first_folder(root: Path, names: tuple[str, ...]) -> Path | None:
    """Return the first of several subfolders that exists."""
    return next((root / name for name in names if (root / name).is_dir()), None)
