"""The size at which the `lite` extractor looks at an image."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image

STEP = 32
PIXEL_BUDGET = 126_000  # 416x320 for a 4:3 photo
LARGEST_ENLARGEMENT = 1.3  # in area: a thumbnail is not blown up to the full budget
SMALLEST_SIDE, LARGEST_SIDE = 96, 1024


def input_size(width: int, height: int) -> tuple[int, int]:
    """Width and height of the network's input: about the pixel budget, sides rounded to multiples of 32.

    Rounding each side bends the aspect by a few percent, but leaves nothing to pad: the result for an image cannot
    depend on the images beside it, and every image costs about the same.
    """
    budget = min(PIXEL_BUDGET, LARGEST_ENLARGEMENT * width * height)
    scale = math.sqrt(budget / (width * height))
    wide, high = (round(min(max(side * scale, SMALLEST_SIDE), LARGEST_SIDE) / STEP) * STEP for side in (width, height))
    return wide, high


def fit(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Resize an RGB image (H, W, 3) to its :func:`input_size`."""
    height, width = pixels.shape[:2]
    size = input_size(width, height)
    if size == (width, height):
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR, reducing_gap=3.0))
