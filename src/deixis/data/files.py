"""What readers of datasets share: split lists, folders of images, and the names of common problems."""

from __future__ import annotations

import os
from pathlib import Path

from deixis.data.dataset import Problems
from deixis.errors import BadFileError
from deixis.images import IMAGE_SUFFIXES
from deixis.reading.files import read_text

MISSING_IMAGE = "missing image"
DUPLICATE_ID = "two images with one id"
EMPTY_CAPTION = "empty caption"


def id_list(path: Path) -> tuple[str, ...]:
    """Return the ids of a split list: the last word of every line that is not empty."""
    return tuple(dict.fromkeys(line.split()[-1] for line in read_text(path).splitlines() if line.strip()))


class ImageFolder:
    """The images of a folder by the name without its ending; two files of one name are noted."""

    def __init__(self, folder: Path | None, problems: Problems) -> None:
        self.folder = folder
        self._names: dict[str, str] = {}
        if folder is None:
            return
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries)
        except OSError as error:
            raise BadFileError(f"{folder} cannot be read: {error}") from error
        for name in names:
            stem, suffix = os.path.splitext(name)
            if suffix.lower() not in IMAGE_SUFFIXES:
                continue
            if stem in self._names:
                problems.note(DUPLICATE_ID, f"{folder}: {self._names[stem]} and {name}")
            else:
                self._names[stem] = name

    def get(self, stem: str) -> Path | None:
        """Return the file of an id, or None."""
        name = self._names.get(stem)
        return self.folder / name if name is not None and self.folder is not None else None

    def __len__(self) -> int:
        return len(self._names)


def first_folder(root: Path, names: tuple[str, ...]) -> Path | None:
    """Return the first of several subfolders that exists."""
    return next((root / name for name in names if (root / name).is_dir()), None)
