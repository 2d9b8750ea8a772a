"""Files that are either wholly there or not at all: written beside their place under a temporary name, then renamed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from deixis.errors import DeixisError


class DiskFullError(DeixisError):
    """There was no room for a file."""


_swept: set[Path] = set()
"""Folders in which this process has looked for what killed ones left behind."""


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary name to write to; it becomes ``path`` when the block ends well, and goes away when it does not.

    The bytes are on the disk before the name changes, so a power cut leaves the old file or the new one. Two processes
    may write the same path: each has a temporary name of its own, and the last one wins. What a killed process left
    half-written in the folder goes away with the next file written there. A full disk is told with the file's name.
    """
    path = Path(path)
    sweep(path.parent)
    partial = temporary_name(path)
    try:
        yield partial
        sync(partial)
        partial.replace(path)
    except Exception as error:
        if disk_is_full(error):
            raise cannot_write(path, error) from error
        raise
    finally:
        partial.unlink(missing_ok=True)


def temporary_name(path: Path) -> Path:
    """Return the name beside ``path`` under which this process writes; :func:`sweep` knows it."""
    return path.with_name(f".{path.name}.{os.getpid()}-{_machine()}.partial")


def sweep(folder: Path) -> None:
    """Remove what was being written in a folder when its process was killed; looks once in each folder."""
    folder = folder.absolute()
    if folder in _swept:
        return
    _swept.add(folder)
    mine = re.compile(rf"\..*\.(\d+)-{_machine()}\.partial")  # other machines look after their own
    try:
        found = [(entry, match) for entry in os.scandir(folder) if (match := mine.fullmatch(entry.name))]
    except OSError:  # not there yet, or not to be listed: nothing of ours to remove
        return
    for entry, match in found:
        if _alive(int(match[1])):
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            Path(entry.path).unlink(missing_ok=True)


@cache
def _machine() -> str:
    """A short name of this machine: process numbers mean nothing on another one that shares the disk."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def _alive(process: int) -> bool:
    """Whether a process of this machine still runs; its number may have gone to another one, which is no harm."""
    if process == os.getpid():
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def disk_is_full(error: BaseException) -> bool:
    """Whether an error says that there is no room: by number, or in the words of safetensors, which gives none."""
    numbers = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    said = any(f"os error {number})" in str(error) for number in numbers)
    return isinstance(error, DiskFullError) or getattr(error, "errno", None) in numbers or said


def cannot_write(
    path: Path, error: BaseException, way_out: str = "make room, then run the same command again"
) -> DeixisError:
    """Return the error for a failed write: the file, the reason and the way out."""
    if disk_is_full(error):
        return DiskFullError(f"cannot write {path}: the disk is full; {way_out}")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DeixisError(f"cannot write {path}: {reason}")


@contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """Give a temporary folder to fill; it becomes ``path``, which is missing or empty, when the block ends well.

    Its files may be read by whom the user lets read new files (safetensors writes them for their owner alone).
    """
    path = Path(path)
    sweep(path.parent)
    partial = temporary_name(path)
    try:
        partial.mkdir(parents=True)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        yield partial
        for file in partial.rglob("*"):
            if file.is_file():
                file.chmod(0o666 & ~_umask())
                sync(file)
        partial.replace(path)
        sync(path.parent)
    except Exception as error:
        if disk_is_full(error):
            raise cannot_write(path, error) from error
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def require_new_folder(folder: Path, what: str) -> None:
    """Refuse a folder with something in it; ``what`` (such as "the clips") says for whom another is wanted."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DeixisError(f"{folder} exists already: give {what} a folder of their own")


def write_text(path: str | Path, text: str) -> None:
    """Write a whole text file; what is no text becomes an escape, see :func:`utf8`."""
    write_bytes(path, utf8(text))


def utf8(text: str) -> bytes:
    r"""Return text as UTF-8, with escapes for what is none: half a character, or bytes of a file's name in no encoding.

    Photos of old disks have such names. Inside of JSON the escape is JSON's own, so the name is found again.

    >>> utf8('{"image": "caf\udce9.jpg"}')
    b'{"image": "caf\\udce9.jpg"}'
    """
    return text.encode("utf-8", "backslashreplace")


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a whole file of bytes; what cannot be written is told with the file's name."""
    try:
        with whole_file(path) as partial:
            partial.write_bytes(data)
    except OSError as error:
        raise cannot_write(Path(path), error) from error


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
