"""JSON as plain values, and checks that a value is of the kind it should be."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deixis.errors import BadFileError
from deixis.reading.files import MAX_TEXT_BYTES, decoded, read_text


def read_json(path: Path, *, limit: int = MAX_TEXT_BYTES) -> Any:
    """Return a JSON file's value, plain or gzip."""
    return parse_json(read_text(path, limit=limit), str(path))


def read_json_object(path: Path, *, limit: int = MAX_TEXT_BYTES) -> dict[str, Any]:
    """Return a JSON file's value, which must be an object."""
    return expect_object(read_json(path, limit=limit), str(path))


def parse_json(text: str | bytes, place: str) -> Any:
    """Parse JSON; what cannot be parsed is an error that names the place."""
    if isinstance(text, bytes):
        text = decoded(text, place)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadFileError(f"{place}, line {error.lineno}, column {error.colno}: broken JSON: {error.msg}") from error
    except RecursionError as error:
        raise BadFileError(f"{place}: broken JSON: lists or objects are nested too deeply") from error
    except (ValueError, MemoryError) as error:
        raise BadFileError(f"{place}: broken JSON: {error}") from error


def expect_list(value: Any, place: str) -> list[Any]:
    """Return ``value`` if it is a list."""
    if not isinstance(value, list):
        raise BadFileError(f"{place} should be a list, not {kind_of(value)}")
    return value


def expect_object(value: Any, place: str) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object."""
    if not isinstance(value, dict):
        raise BadFileError(f"{place} should be an object, not {kind_of(value)}")
    return value


def expect_text(value: Any, place: str) -> str:
    """Return ``value`` if it is a string."""
    if not isinstance(value, str):
        raise BadFileError(f"{place} should be text, not {kind_of(value)}")
    return value


def expect_texts(value: Any, place: str) -> list[str]:
    """Return ``value`` if it is a list of strings."""
    texts = expect_list(value, place)
    if not all(isinstance(item, str) for item in texts):  # in one go: there may be a million
        at = next(at for at, item in enumerate(texts) if not isinstance(item, str))
        expect_text(texts[at], f"{place}[{at}]")
    return texts


def expect_count(value: Any, place: str, *, least: int = 0, most: int = 2**53) -> int:
    """Return ``value`` if it is a whole number between ``least`` and ``most``."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadFileError(f"{place} should be a whole number from {least} to {most:,}, not {kind_of(value)}")
    return value


def expect_number(value: Any, place: str) -> float:
    """Return ``value`` if it is a finite number."""
    try:
        if not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value):
            return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        pass
    raise BadFileError(f"{place} should be a finite number, not {kind_of(value)}")


def expect_keys(data: Mapping[str, Any], wanted: set[str], place: str) -> None:
    """Refuse an object that lacks one of these keys or has another."""
    odd = wanted ^ set(data)
    if odd:
        raise BadFileError(f"{place} is damaged: missing or unknown {', '.join(sorted(map(str, odd)))[:200]}")


def kind_of(value: Any) -> str:
    """Return how messages call a value that is not what it should be."""
    names = {dict: "an object", list: "a list", str: "text", type(None): "null", bool: "true or false"}
    try:
        return names.get(type(value), f"{value!r}"[:60])
    except ValueError:  # a whole number of thousands of digits has no decimal form
        return "a number of thousands of digits"
