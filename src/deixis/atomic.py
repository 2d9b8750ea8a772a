"""Files that are either wholly there or not at all: written beside their place under a temporary name, then renamed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deixis.errors import DeixisError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary name to write to; it becomes ``path`` when the block ends well, and goes away when it does not.

    The bytes are on the disk before the name changes, so a power cut leaves the old file or the new one. Two processes
    may write the same path: each has a temporary name of its own, and the last one wins.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        sync(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """Give a temporary folder to fill; it becomes ``path``, which is missing or empty, when the block ends well."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.mkdir(parents=True)
        yield partial
        for file in partial.rglob("*"):
            if file.is_file():
                sync(file)
        partial.replace(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def require_new_folder(folder: Path, what: str) -> None:
    """Refuse a folder with something in it; ``what`` (such as "the clips") says for whom another is wanted."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DeixisError(f"{folder} exists already: give {what} a folder of their own")


def write_text(path: str | Path, text: str) -> None:
    """Write a whole text file; half a surrogate pair, which is no text, becomes a question mark."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8", errors="replace")


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a whole file of bytes."""
    with whole_file(path) as partial:
        partial.write_bytes(data)


def write_json(path: str | Path, data: Any, indent: int | None = 1) -> None:
    """Write a whole JSON file."""
    write_text(path, json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False) + "\n")


def sync(path: Path) -> None:
    """Wait until a file or a folder's list of names is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
