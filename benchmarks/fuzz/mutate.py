"""Damage: what disks and people do to bytes, and what somebody does who knows the format."""

from __future__ import annotations

import json
import random
from typing import Any

import yaml

ODD_BYTES = [
    b"\0", b"\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x80", b"\x7f\xff\xff\xff", b"<", b">", b"[", b"]", b"{", b"}",
    b'"', b"'", b",", b":", b"\n", b"\t", b"-1", b"1e999", b"NaN", b"null", b"[]", b"{}", b"/EN#", b"<object>", b"\r",
    b"\xe2\x80", b"9" * 30, b"!!python/object:os.system", b"&a", b"*a", b"\xef\xbb\xbf", b"../../x", b"%s%n",
]  # fmt: skip
ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 5, 10**9, 2**31, 2**63, 10**30, -(10**18), 0.5, -0.0, 1e308, float("nan"),
    float("inf"), "", "x", "x" * 3000, "\ud800", "\0", "../../etc/passwd", "/dev/zero", "\u202e", [], {}, [[]], [None],
    [1, 2], [1, 2, 3, 4], {"a": 1}, {"kind": "x"}, [[0, 0, 1, 1]], "1e5", "2001-13-45",
]  # fmt: skip


def damaged(data: bytes, rng: random.Random, *, name: str = "") -> bytes:
    """Return other bytes in place of these; JSON and YAML are often changed by value rather than by letter."""
    if rng.random() < 0.6:
        changed = _other_values(data, rng, name)
        if changed is not None:
            return changed
    for _ in range(rng.choice((1, 1, 1, 2, 4, 12))):
        data = _other_bytes(data, rng)
    return data


def _other_bytes(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    # Headers are small and matter most: half of the damage is done to the first bytes.
    at = min(at, rng.randrange(64)) if rng.random() < 0.5 else at
    piece = rng.choice(ODD_BYTES) if rng.random() < 0.6 else rng.randbytes(rng.randrange(1, 9))
    length = rng.choice((1, 4, 40, 400))
    kinds = {
        "flip": lambda: (
            data[:at] + bytes(byte ^ (1 << rng.randrange(8)) for byte in data[at : at + 1]) + data[at + 1 :]
        ),
        "replace": lambda: data[:at] + piece + data[at + len(piece) :],
        "insert": lambda: data[:at] + piece * rng.choice((1, 1, 1, 3, 3000)) + data[at:],
        "delete": lambda: data[:at] + data[at + length :],
        "cut": lambda: data[:at],
        "double": lambda: data[:at] + data[at : at + length] * rng.choice((2, 30)) + data[at:],
        "zero": lambda: data[:at] + b"\0" * length + data[at + length :],
        "swap": lambda: data[at:] + data[:at],
    }
    return kinds[rng.choice(list(kinds))]()


def _other_values(data: bytes, rng: random.Random, name: str) -> bytes | None:
    """Change a value inside JSON, JSON lines or YAML; None for other files."""
    if name.endswith((".yaml", ".yml")):
        try:
            value = yaml.safe_load(data)
        except yaml.YAMLError:
            return None
        changed = _changed(value, rng)
        try:
            return yaml.safe_dump(changed, allow_unicode=False).encode("utf-8", "replace")
        except (yaml.YAMLError, ValueError):
            return None
    if name.endswith(".jsonl"):
        lines = data.split(b"\n")
        at = rng.randrange(len(lines))
        line = _other_json(lines[at], rng)
        return None if line is None else b"\n".join([*lines[:at], line, *lines[at + 1 :]])
    return _other_json(data, rng) if name.endswith(".json") else None


def _other_json(data: bytes, rng: random.Random) -> bytes | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if rng.random() < 0.03:
        return rng.choice((b"[", b'{"a":')) * rng.choice((900, 100_000))
    for _ in range(rng.choice((1, 1, 2))):
        value = _changed(value, rng)
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _changed(value: Any, rng: random.Random) -> Any:
    """Return plain data with one part of it missing, odd, doubled or in another place."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.08:
        return rng.choice(ODD_VALUES)
    key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    choice = rng.random()
    if choice < 0.12:
        if isinstance(value, dict):
            return {k: v for k, v in value.items() if k != key}
        return value[:key] + value[key + 1 :]
    if choice < 0.18:
        new_key = rng.choice(("x", "", "kind", "1"))
        return {**value, new_key: value[key]} if isinstance(value, dict) else [*value, value[key]]
    new = value.copy()
    new[key] = rng.choice(ODD_VALUES) if choice < 0.4 else _changed(value[key], rng)
    return new
