"""The photos people hand us: paths, bytes, PIL images and arrays, one by one or as folders and patterns of names."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from deixis.errors import BadFileError, DeixisError
from deixis.images import IMAGE_SUFFIXES, load_image
from deixis.types import ImageFile, Regions

Photo = str | Path | bytes | Image.Image | NDArray[np.uint8]
"""A file's path, the bytes of a file, a PIL image, or an RGB array (H, W, 3)."""
Seen = Photo | Regions
"""A photo, or its regions where they were found already."""


def read_photo(photo: Photo | ImageFile) -> NDArray[np.uint8]:
    """Return the upright RGB pixels of a photo, (H, W, 3)."""
    if not isinstance(photo, str | Path | bytes | Image.Image | np.ndarray | ImageFile):
        raise DeixisError(
            f"a photo is a path, the bytes of a file, a PIL image or an array, not {type(photo).__name__}"
        )
    return np.asarray(load_image(photo))


def photo_name(photo: Seen) -> str:
    """Return what an answer calls a photo: its path, or ``photo`` where it has none."""
    if isinstance(photo, str | Path):
        return str(photo)
    return str(getattr(photo, "filename", "") or "photo")


def find_photos(arguments: Iterable[str | Path]) -> list[Path]:
    """Return the files that arguments of a command line name: files, folders (all photos in and below) and patterns.

    A file that does not exist is kept, so that the one who reads it can say so and go on with the others.
    """
    found: dict[Path, None] = {}
    for argument in arguments:
        path = Path(argument).expanduser()
        if path.is_dir():
            photos = sorted(file for file in path.rglob("*") if file.suffix.lower() in IMAGE_SUFFIXES)
            if not photos:
                raise BadFileError(f"there is no photo ({', '.join(IMAGE_SUFFIXES)}) in the folder {path}")
        elif not path.exists() and glob.has_magic(str(path)):
            photos = sorted(Path(name) for name in glob.glob(str(path), recursive=True))
            photos = [file for file in photos if file.suffix.lower() in IMAGE_SUFFIXES]
            if not photos:
                raise BadFileError(f"no photo fits the pattern {argument}")
        else:
            photos = [path]
        found |= dict.fromkeys(photos)
    return list(found)
