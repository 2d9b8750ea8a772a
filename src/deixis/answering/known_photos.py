"""Which photos a file of answers is about, by their bytes: the same photo may be called otherwise next time.

Answers name a photo as it was typed (``../photos/dog.jpg``), and that means another file, or none, in another folder.
So the SHA-256 of every answered photo stands in a hidden file beside the answers, as ``sha256sum`` writes it. Where
that file is lost, photos are told apart by their names alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from deixis.errors import DeixisError

_CHUNK = 2**20


class KnownPhotos:
    """The photos that ``answers`` holds answers about.

    >>> known = KnownPhotos(Path("out.jsonl"))  # doctest: +SKIP
    >>> known.name_of(Path("photos/dog.jpg"))  # doctest: +SKIP
    '../photos/dog.jpg'
    """

    def __init__(self, answers: Path) -> None:
        self.path = answers.with_name(f".{answers.name}.photos")
        self._names: dict[str, str] = {}
        if self.path.is_file():
            for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
                digest, gap, name = line.partition("  ")
                if gap and len(digest) == 64:  # a line cut short is of a photo that is asked again
                    self._names.setdefault(digest, name)

    def name_of(self, photo: Path) -> str | None:
        """Return what a photo was called when it was answered, or None for one that was not, or cannot be read."""
        if not self._names:
            return None
        try:
            return self._names.get(_digest(photo))
        except OSError:
            return None

    def add(self, photos: Iterable[str]) -> None:
        """Remember photos, by the paths that they were just read from."""
        lines = []
        for name in photos:
            if "\n" in name:
                continue  # such a name would break the file, and is found again by itself
            try:
                digest = _digest(Path(name))
            except OSError:  # gone in the meantime
                continue
            if self._names.setdefault(digest, name) == name:
                lines.append(f"{digest}  {name}\n")
        try:
            with self.path.open("a", encoding="utf-8", errors="replace") as file:
                file.writelines(lines)
        except OSError as error:
            raise DeixisError(f"cannot write {self.path}: {error.strerror or error}") from error


def _digest(path: Path) -> str:
    made = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            made.update(chunk)
    return made.hexdigest()
