"""Bytes and text of a file, plain or gzip, within stated limits."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from pathlib import Path
from typing import IO

from deixis.errors import BadFileError

MAX_TEXT_BYTES = 4 * 2**30
"""No text file that we read is larger, packed or not."""
MOST_TIMES = 100
"""What is packed may unpack to so many times its size; real text packs by 3 to 30, a bomb by 1000."""
FREE_BYTES = 32 * 2**20
"""Up to here any ratio is fine: short files of one repeated line pack very well."""

_CHUNK = 2**20


def open_file(path: Path) -> IO[bytes]:
    """Open a regular file; a pipe or a device, which may never end, is refused."""
    try:
        # O_NONBLOCK: opening a pipe without a writer would wait for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError as error:
        raise BadFileError(f"there is no file {path}") from error
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise BadFileError(f"{path} cannot be opened: {getattr(error, 'strerror', None) or error}") from error
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise BadFileError(f"{path} is a {'folder' if stat.S_ISDIR(mode) else 'device or a pipe'}, not a file")
    return os.fdopen(handle, "rb")


def read_bytes(path: Path, *, limit: int = MAX_TEXT_BYTES) -> bytes:
    """Return a file's bytes, unpacked if its name ends in ``.gz``; more than ``limit`` bytes are refused."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            if path.suffix == ".gz":
                return _unpacked(path, file, size, limit)
            if size <= limit:
                data = file.read(limit + 1)  # a file may grow, and those of /proc say that they are empty
                if len(data) <= limit:
                    return data
        except (OSError, EOFError, zlib.error, ValueError, MemoryError) as error:
            raise BadFileError(f"{path} cannot be read: {error or 'it does not fit into memory'}") from error
    raise BadFileError(f"{path} holds more than {limit:,} bytes, more than a file of its kind can need")


def _unpacked(path: Path, file: IO[bytes], size: int, limit: int) -> bytes:
    most = min(limit, unpacked_limit(size))
    chunks, total = [], 0
    with gzip.GzipFile(fileobj=file) as packed:
        while chunk := packed.read(_CHUNK):
            chunks.append(chunk)
            total += len(chunk)
            if total > most:
                raise BadFileError(
                    f"{path} has {size:,} bytes and unpacks to more than {most:,}, more than a file of its kind can "
                    "need: unpack it yourself if you trust it"
                )
    return b"".join(chunks)


def unpacked_limit(size: int) -> int:
    """Return how many bytes a packed file of ``size`` bytes may unpack to."""
    return max(FREE_BYTES, MOST_TIMES * size)


def read_text(path: Path, *, limit: int = MAX_TEXT_BYTES) -> str:
    """Return a file as text; it must be UTF-8."""
    return decoded(read_bytes(path, limit=limit), str(path))


def decoded(data: bytes, place: str) -> str:
    """Return bytes as text; those that are not UTF-8 are an error that names the line."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadFileError(f"{place}, line {line}: not UTF-8 text (byte {data[error.start]:#04x})") from error


def read_lines(path: Path, *, limit: int = MAX_TEXT_BYTES) -> list[str]:
    """Return the lines of a text file that are not empty, without the space around them."""
    return [line.strip() for line in read_text(path, limit=limit).splitlines() if line.strip()]
