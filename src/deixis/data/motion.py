"""A camera that moves over a photo: windows for each frame, and where boxes of the photo lie in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from deixis.types.sentence import Box

SMALLEST_VIEW, LARGEST_VIEW = 0.62, 0.95  # shares of the largest window that fits
SHAKE = 0.012  # of the window's size
LEAST_VISIBLE = 0.4
SMALLEST_SIDE = 6.0


def camera_path(size: tuple[int, int], frames: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a window x1 y1 x2 y2 of the photo for each frame, (F, 4), all inside it and all of its shape.

    The camera pans and zooms from one random window to another, slow at both ends, and shakes a little, as hands do.
    """
    photo = np.array(size, dtype=np.float64)  # (2,)
    share = rng.uniform(SMALLEST_VIEW, LARGEST_VIEW, size=2)
    free = [(1 - s) * photo for s in share]
    start, end = (photo * s / 2 + rng.uniform(0, 1, 2) * room for s, room in zip(share, free, strict=True))
    t = np.linspace(0, 1, frames)
    ease = t * t * (3 - 2 * t)  # (F,)
    zoom = share[0] + (share[1] - share[0]) * ease
    middle = start + (end - start) * ease[:, None]  # (F, 2)
    speed, phase = rng.uniform(2, 7, (3, 2)), rng.uniform(0, 2 * np.pi, (3, 2))
    middle += SHAKE / 3 * photo * np.sin(2 * np.pi * speed * t[:, None, None] + phase).sum(1)
    half = zoom[:, None] * photo / 2
    middle = np.clip(middle, half, photo - half)
    return np.concatenate([middle - half, middle + half], 1)


def view(photo: Image.Image, window: NDArray[np.float64], size: tuple[int, int]) -> Image.Image:
    """Return what the camera sees through a window, at the clip's size."""
    corners = (float(window[0]), float(window[1]), float(window[2]), float(window[3]))
    return photo.transform(size, Image.Transform.EXTENT, corners, Image.Resampling.BICUBIC)


def box_in_view(box: Box, window: NDArray[np.float64], size: tuple[int, int]) -> Box | None:
    """Return a photo's box in pixels of the clip, cut at its border; None if too little of it is seen."""
    seen, share = _cut(box, window, size)
    if min(seen[2] - seen[0], seen[3] - seen[1]) < SMALLEST_SIDE:
        return None
    return seen if share >= LEAST_VISIBLE else None


def visible_share(box: Box, window: NDArray[np.float64]) -> float:
    """Return which share of a photo's box lies inside the window, from 0 to 1."""
    return _cut(box, window, (1, 1))[1]


def _cut(box: Box, window: NDArray[np.float64], size: tuple[int, int]) -> tuple[Box, float]:
    """Return the seen part of a box, in pixels of the clip, and its share of the whole box."""
    x1, y1, x2, y2 = window
    wide, high = size[0] / (x2 - x1), size[1] / (y2 - y1)
    moved = ((box[0] - x1) * wide, (box[1] - y1) * high, (box[2] - x1) * wide, (box[3] - y1) * high)
    cut = (max(moved[0], 0.0), max(moved[1], 0.0), min(moved[2], float(size[0])), min(moved[3], float(size[1])))
    width, height = cut[2] - cut[0], cut[3] - cut[1]
    whole = (moved[2] - moved[0]) * (moved[3] - moved[1])
    share = max(width, 0.0) * max(height, 0.0) / whole if whole > 0 else 0.0
    return (float(cut[0]), float(cut[1]), float(cut[2]), float(cut[3])), float(share)
