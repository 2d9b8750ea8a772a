"""The photos people hand us: files, bytes, PIL images, arrays and tensors, one by one or as folders and patterns."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from deixis.errors import BadFileError, DeixisError
from deixis.images import IMAGE_SUFFIXES, load_image
from deixis.types import ImageFile, Regions

Photo = str | Path | bytes | Image.Image | NDArray[Any] | torch.Tensor | BinaryIO
"""A file's path, the bytes of a file, an open file, a PIL image, an array (H, W) or (H, W, 3), or a tensor (3, H, W).

Whole numbers have 8 or 16 bits; floating point values lie between 0 and 1."""
Seen = Photo | Regions
"""A photo, or its regions where they were found already."""

_ADDRESS = re.compile(r"(?i)(https?|ftp|s3|gs|data|file):")


def read_photo(photo: Photo | ImageFile) -> NDArray[np.uint8]:
    """Return the upright RGB pixels of a photo, (H, W, 3)."""
    if isinstance(photo, str):
        refuse_address(photo)
    if isinstance(photo, torch.Tensor):
        photo = _array_of(photo)
    if isinstance(photo, np.ndarray) and photo.dtype.kind == "f":
        photo = _eight_bits(photo)
    elif not isinstance(photo, str | Path | bytes | Image.Image | np.ndarray | ImageFile):
        photo = _bytes_of(photo)
    return np.asarray(load_image(photo))


def refuse_address(text: str) -> None:
    """Say that nothing is downloaded: what a machine fetches is for its owner to decide."""
    if _ADDRESS.match(text):
        raise DeixisError(
            f"{text[:200]!r} is an address, and Deixis downloads nothing by itself: save the photo first, or in Python "
            "hand over what you open, such as model.caption(urllib.request.urlopen(address))"
        )


def _bytes_of(photo: Any) -> bytes:
    """Return what an open file holds from where it stands."""
    if not callable(getattr(photo, "read", None)):
        raise DeixisError(
            "a photo is a path, an open file, the bytes of a file, a PIL image, an array or a tensor, "
            f"not {type(photo).__name__}"
        )
    try:
        data = photo.read()
    except (OSError, ValueError) as error:  # ValueError: it is closed
        raise BadFileError(f"the open file {getattr(photo, 'name', '')!r} cannot be read: {error}") from error
    if not isinstance(data, bytes):
        raise DeixisError(f"the open file gives {type(data).__name__} instead of bytes: open it with mode 'rb'")
    return data


def _array_of(tensor: torch.Tensor) -> NDArray[Any]:
    """Return a tensor (3, H, W), as torch keeps pictures, or (H, W, 3) as an array (H, W, 3)."""
    array: NDArray[Any] = (
        tensor.detach().to("cpu").float().numpy() if tensor.is_floating_point() else tensor.cpu().numpy()
    )
    if array.ndim == 4 and len(array) == 1:
        array = array[0]
    if array.ndim == 3 and array.shape[0] in (1, 3, 4) and array.shape[2] not in (1, 3, 4):
        array = array.transpose(1, 2, 0)
    return array


def _eight_bits(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return floating point values between 0 and 1 as 0 to 255."""
    low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    if not (np.isfinite(array).all() and low >= 0.0 and high <= 1.0):
        raise BadFileError(
            f"a photo of floating point values lies between 0 and 1, and this one between {low:g} and {high:g}: "
            "divide by 255, undo the normalisation, or give uint8"
        )
    return np.round(array * 255).astype(np.uint8)


def photo_name(photo: Seen) -> str:
    """Return what an answer calls a photo: its path, or ``photo`` where it has none."""
    if isinstance(photo, str | Path):
        return str(photo)
    named = getattr(photo, "filename", "") or getattr(photo, "name", "")  # of a PIL image, of an open file
    return named if isinstance(named, str) and named else "photo"


def photo_names(images: Sequence[Seen], names: Sequence[str] | None = None) -> list[str]:
    """Return what answers call photos: the names given, else their own."""
    if names is None:
        return [photo_name(image) for image in images]
    if len(names) != len(images):
        raise DeixisError(f"{len(images)} photos but {len(names)} names")
    return list(names)


def kept_photo(photo: Seen) -> Photo | None:
    """Return what an answer keeps to be drawn on: a photo without a file's name. Of an open file nothing is left."""
    return photo if isinstance(photo, bytes | Image.Image | np.ndarray | torch.Tensor) else None


def find_photos(arguments: Iterable[str | Path]) -> list[Path]:
    """Return the files that arguments of a command line name: files, folders (all photos in and below) and patterns.

    A file that does not exist is kept, so that the one who reads it can say so and go on with the others.
    """
    found: dict[Path, None] = {}
    for argument in arguments:
        refuse_address(str(argument))
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
