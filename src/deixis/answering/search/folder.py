"""What photos are in a folder now, and how they differ from those an index knows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from deixis.answering.search.segments import PhotoFile
from deixis.errors import BadFileError
from deixis.images import IMAGE_SUFFIXES


def scan(folder: Path) -> dict[str, PhotoFile]:
    """Return the photos in and below a folder by their path in it, without hidden files and links to folders."""
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise BadFileError(f"{folder} {what}: name a folder of photos to search in")
    found = {photo.path: photo for photo in _below(folder, "")}
    if not found:
        raise BadFileError(f"there is no photo ({', '.join(IMAGE_SUFFIXES)}) in the folder {folder}")
    return found


def state_of(path: Path) -> tuple[int, int] | None:
    """Return what tells whether a file was written again, or None where it is gone."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns


def _below(folder: Path, prefix: str) -> Iterator[PhotoFile]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:  # gone since its name was read
        return
    except OSError as error:
        raise BadFileError(f"{folder} cannot be read: {error}") from error
    for entry in entries:
        if entry.name.startswith("."):
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _below(Path(entry.path), f"{prefix}{entry.name}/")
            elif entry.name.lower().endswith(IMAGE_SUFFIXES) and entry.is_file():
                facts = entry.stat()
                yield PhotoFile(f"{prefix}{entry.name}", facts.st_size, facts.st_mtime_ns)
        except FileNotFoundError:
            continue
