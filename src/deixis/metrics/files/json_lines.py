"""JSON and JSON-lines files whose errors name the line: what is read can be pointed at again by its path of keys.

The file is parsed by the standard parser, at its speed. Only when something is wrong is the text walked through again
to find the line of the offending value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any

from deixis.errors import BadFileError
from deixis.reading.files import read_text
from deixis.types import Box

Key = str | int

LARGEST = 1e9
"""No image has a pixel so far out; a larger coordinate is a mistake."""

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class _DuplicateKeyError(ValueError):
    """An object names one key twice; the standard parser would quietly keep the last."""


@dataclass(frozen=True, slots=True, eq=False)
class JsonFile:
    """A parsed file. For JSON lines ``data`` is the list of the lines' values and ``lines`` their line numbers."""

    path: Path
    text: str
    data: Any
    lines: tuple[int, ...] | None = None

    def error(self, keys: Sequence[Key], message: str) -> BadFileError:
        """Return an error that names the file, the line and the path of the value at ``keys``."""
        if self.lines is not None and keys and isinstance(keys[0], int):
            line, shown = self.lines[keys[0]], keys[1:]
        else:
            line, shown = self.text.count("\n", 0, _position(self.text, keys)) + 1, keys
        where = show_path(shown)
        return BadFileError(f"{self.path}, line {line}: {where + ' ' if where else ''}{message}")

    def list_at(self, value: Any, keys: Sequence[Key], what: str) -> list[Any]:
        """Return ``value`` if it is a list."""
        if not isinstance(value, list):
            raise self.error(keys, f"should be a list of {what}, got {show(value)}")
        return value

    def object_at(self, value: Any, keys: Sequence[Key], what: str) -> dict[str, Any]:
        """Return ``value`` if it is an object."""
        if not isinstance(value, dict):
            raise self.error(keys, f"should be an object ({what}), got {show(value)}")
        return value

    def whole_at(self, value: Any, keys: Sequence[Key], what: str) -> int:
        """Return ``value`` if it is a whole number, 0 or more."""
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.error(keys, f"should be {what}, a whole number, got {show(value)}")
        return value

    def text_at(self, value: Any, keys: Sequence[Key], what: str) -> str:
        """Return ``value`` if it is text."""
        if not isinstance(value, str):
            raise self.error(keys, f"should be {what}, a string, got {show(value)}")
        return value

    def id_at(self, value: Any, keys: Sequence[Key]) -> str:
        """Return an id, given as text or as a whole number."""
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise self.error(keys, f"should be an image id, got {show(value)}")
        return str(value)

    def boxes_at(self, values: Sequence[Any], keys: Sequence[Key], *, longer: bool = False) -> tuple[Box, ...]:
        """Return the boxes of a list; files hold hundreds of thousands, so places are made up only for wrong ones."""
        return tuple(
            _quick_box(value, longer) or self.box_at(value, [*keys, at], longer=longer)
            for at, value in enumerate(values)
        )

    def box_at(self, value: Any, keys: Sequence[Key], *, longer: bool = False) -> Box:
        """Return [x1, y1, x2, y2] as floats; with ``longer`` further numbers (frame, score) may follow."""
        if not isinstance(value, list) or len(value) < 4 or (len(value) > 4 and not longer):
            raise self.error(keys, f"should be a box [x1, y1, x2, y2], got {show(value)}")
        for at, number in enumerate(value[:4]):
            if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < LARGEST:  # or NaN
                raise self.error([*keys, at], f"should be a finite number, got {show(number)} in box {show(value)}")
        x1, y1, x2, y2 = (float(number) for number in value[:4])
        if x2 < x1 or y2 < y1:
            raise self.error(
                keys, f"is {show(value)}: a box is [x1, y1, x2, y2] with x1 <= x2 and y1 <= y2, not another order"
            )
        return x1, y1, x2, y2


def read_json_file(path: Path) -> JsonFile:
    """Read a file that holds one JSON value, or one per line."""
    text = read_text(path)
    if not text.strip():
        raise BadFileError(f"{path} is empty")
    try:
        return JsonFile(path, text, json.loads(text, object_pairs_hook=_no_duplicates))
    except _DuplicateKeyError:
        at, key = _first_duplicate(text)
        raise BadFileError(
            f"{path}, line {text.count(chr(10), 0, at) + 1}: the key {show(key)} is there twice"
        ) from None
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and "\n" in text[: error.pos]:
            return _read_lines(path, text)
        raise BadFileError(f"{path}, line {error.lineno}: not JSON: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise BadFileError(f"{path} is nested too deeply to be a results file") from error
    except ValueError as error:  # a number of thousands of digits
        raise BadFileError(f"{path} is not JSON that can be read: {error}") from error


def _read_lines(path: Path, text: str) -> JsonFile:
    values, numbers = [], []
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines() would also cut at U+2028 and U+0085
        if not line.strip():
            continue
        try:
            values.append(json.loads(line, object_pairs_hook=_no_duplicates))
        except _DuplicateKeyError as error:
            raise BadFileError(f"{path}, line {number}: the key {error} is there twice") from None
        except json.JSONDecodeError as error:
            raise BadFileError(f"{path}, line {number}: not JSON: {error.msg} at column {error.colno}") from error
        except (RecursionError, ValueError) as error:
            raise BadFileError(f"{path}, line {number}: not JSON that can be read: {error}") from error
        numbers.append(number)
    return JsonFile(path, text, values, tuple(numbers))


def _quick_box(value: Any, longer: bool) -> Box | None:
    """Return a box that is plainly right, or None for one that needs a closer look."""
    if type(value) is not list or len(value) < 4 or (len(value) > 4 and not longer):
        return None
    x1, y1, x2, y2 = value[:4]
    if not (type(x1) in _NUMBERS and type(y1) in _NUMBERS and type(x2) in _NUMBERS and type(y2) in _NUMBERS):
        return None
    if -LARGEST < x1 <= x2 < LARGEST and -LARGEST < y1 <= y2 < LARGEST:  # False for NaN
        return float(x1), float(y1), float(x2), float(y2)
    return None


_NUMBERS = frozenset([int, float])


def show(value: Any, limit: int = 80) -> str:
    """Return a value as it would stand in JSON, cut short."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def show_path(keys: Sequence[Key]) -> str:
    """Return keys as ``results["v_1"]["0"].clss[2]``."""
    text = ""
    for key in keys:
        if isinstance(key, str) and key.isidentifier():
            text += f".{key}" if text else key
        else:
            text += f"[{json.dumps(key, ensure_ascii=False)}]"
    return text


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(show(key))
            seen.add(key)
    return found


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _position(text: str, keys: Sequence[Key]) -> int:
    """Return where the value at ``keys`` begins; if the path ends early, the deepest place on it."""
    at = _skip(text, 0)
    for key in keys:
        found = _in_object(text, at, key) if isinstance(key, str) else _in_array(text, at, key)
        if found is None:
            return at
        at = found
    return at


def _in_object(text: str, at: int, key: str) -> int | None:
    if text[at] != "{":
        return None
    at = _skip(text, at + 1)
    while text[at] == '"':
        name, at = scanstring(text, at + 1)
        at = _skip(text, _skip(text, at) + 1)  # over the colon
        if name == key:
            return at
        at = _skip(text, _DECODER.raw_decode(text, at)[1])
        if text[at] != ",":
            return None
        at = _skip(text, at + 1)
    return None


def _in_array(text: str, at: int, index: int) -> int | None:
    if text[at] != "[":
        return None
    at = _skip(text, at + 1)
    for _ in range(index):
        if text[at] == "]":
            return None
        at = _skip(text, _DECODER.raw_decode(text, at)[1])
        if text[at] != ",":
            return None
        at = _skip(text, at + 1)
    return at


def _first_duplicate(text: str) -> tuple[int, str]:
    """Return where the first repeated key of valid JSON stands, and the key."""
    seen: list[set[str] | None] = []  # the keys of every open object, None for an open array
    at = 0
    expect_key = False
    while at < len(text):
        sign = text[at]
        if sign == '"':
            start = at
            name, at = scanstring(text, at + 1)
            keys = seen[-1] if seen else None
            if expect_key and keys is not None:
                if name in keys:
                    return start, name
                keys.add(name)
                expect_key = False
            continue
        if sign in "{[":
            seen.append(set() if sign == "{" else None)
            expect_key = sign == "{"
        elif sign in "}]":
            seen.pop()
        elif sign == ",":
            expect_key = seen[-1] is not None
        at += 1
    return 0, ""
