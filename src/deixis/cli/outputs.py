"""Where commands write: names that cannot be written are refused before any work is done."""

from __future__ import annotations

import os
from pathlib import Path

from deixis.errors import DeixisError

_STREAMS = frozenset(map(Path, ("/dev", "/dev/fd", "/proc/self/fd")))


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
