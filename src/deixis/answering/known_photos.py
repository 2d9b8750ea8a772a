"""Which photos a file of answers is about, by their bytes: the same photo may be called otherwise next time.

Answers name a photo as it was typed (``../photos/dog.jpg``), and that means another file, or none, in another folder.
So the SHA-256 of every answered photo stands in a hidden file beside the answers, as ``sha256sum`` writes it. Where
that file is lost, photos are told apart by their names alone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from deixis.atomic import cannot_write

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
        self._there: set[tuple[str, str]] = set()
        if self.path.is_file():
            data = self.path.read_bytes()
            whole = data[: data.rfind(b"\n") + 1]
            for line in whole.decode("utf-8", errors="replace").splitlines():
                digest, gap, name = line.partition("  ")
                if gap and len(digest) == 64:
                    self._know(digest, name)
            if len(whole) < len(data):  # a line cut short is of a photo that is asked again
                os.truncate(self.path, len(whole))

    def name_of(self, photo: Path) -> str | None:
        """Return what a photo was called when it was answered, or None for one that was not, or cannot be read."""
        if not self._names:
            return None
        try:
            return self._names.get(_digest(photo))
        except OSError:
            return None

    def add(self, photos: Iterable[str]) -> None:
        """Remember photos, by the paths that they were just read from.

        To be called before their answers are written: a photo that is known and has no answer is asked again, one that
        has an answer and is not known would be answered twice under another name.
        """
        lines = []
        for name in photos:
            if "\n" in name:
                continue  # such a name would break the file, and is found again by itself
            try:
                digest = _digest(Path(name))
            except OSError:  # gone in the meantime
                continue
            if (digest, name) not in self._there:
                self._know(digest, name)
                lines.append(f"{digest}  {name}\n")
        try:
            with self.path.open("a", encoding="utf-8", errors="replace") as file:
                file.writelines(lines)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def _know(self, digest: str, name: str) -> None:
        self._names[digest] = name  # the latest, as an earlier one may have been killed before it was answered
        self._there.add((digest, name))


def _digest(path: Path) -> str:
    made = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            made.update(chunk)
    return made.hexdigest()
