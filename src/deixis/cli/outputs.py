"""What commands write, and where: names that cannot be written are refused before any work is done."""

from __future__ import annotations

import os
from pathlib import Path

from deixis.errors import DeixisError

_STREAMS = frozenset(map(Path, ("/dev", "/dev/fd", "/proc/self/fd")))


def check_folder(path: Path, such_as: str) -> None:
    """Refuse the name of a folder to be written whole where something lies already."""
    if path.exists() and (not path.is_dir() or next(path.iterdir(), None) is not None):
        what = "a folder that is not empty" if path.is_dir() else "a file"
        raise DeixisError(f"{path} is {what}: give the name of a new folder, such as {path.with_name(such_as)}")
    if not path.is_dir():
        check_output(path, such_as)


def check_output(path: Path | None, such_as: str) -> None:
    """Refuse the name of a file to be written whole: nothing is worse than an hour's answers without a place to go.

    Files are written beside their place and renamed, so a name that stands for a device would replace it.
    """
    if path is None:
        return
    if path.is_dir():
        raise DeixisError(f"{path} is a folder: give a file's name, such as {path / such_as}")
    if path.absolute().parent in _STREAMS or (path.exists() and not path.is_file()):
        raise DeixisError(f"{path} is a device or a pipe: give a file's name, such as {such_as}")
    there = next(folder for folder in path.absolute().parents if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise DeixisError(f"cannot write {path}: {there} is {'read-only' if there.is_dir() else 'no folder'}")


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: 1 caption, 2,000 captions."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
