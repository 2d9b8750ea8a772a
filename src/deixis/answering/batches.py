"""Many photos: read a few at a time, answer them together, and go on past those that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from deixis.answering.photos import Photo, read_photo
from deixis.defaults import PIXELS_AT_ONCE
from deixis.errors import DeixisError
from deixis.types import ImageFile

AT_ONCE = 16

Failed = Callable[[str, DeixisError], None]
"""Told the name of every photo that cannot be read, and why."""


def in_batches(
    photos: Iterable[tuple[str, Photo | ImageFile]], failed: Failed
) -> Iterator[list[tuple[str, NDArray[np.uint8]]]]:
    """Yield named photos with their pixels, a few at a time; those that cannot be read are reported and left out."""
    batch: list[tuple[str, NDArray[np.uint8]]] = []
    pixels = 0
    for name, photo in photos:
        try:
            image = read_photo(photo)
        except DeixisError as error:
            failed(name, error)
            continue
        size = image.shape[0] * image.shape[1]
        if batch and (len(batch) == AT_ONCE or pixels + size > PIXELS_AT_ONCE):
            yield batch
            batch, pixels = [], 0
        batch.append((name, image))
        pixels += size
    if batch:
        yield batch
