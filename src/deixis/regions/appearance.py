"""What a box looks like, without a network: its colours, and where in it which colours and edges lie.

Everything is a mean over a rectangle, so summed-area tables answer any number of boxes in a few operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Array = NDArray[Any]

BINS = 16
"""Bins of the colour histogram, per channel."""
DIRECTIONS = 8
GRID = 4
MAP = 7
"""Cells along each side of the feature map."""


def appearance_planes(image: NDArray[np.uint8]) -> Array:
    """Return summed-area tables of an image: colour bins, edge strength per direction, mean colour, (H+1, W+1, C)."""
    lab = np.asarray(Image.fromarray(image).convert("LAB")).copy()
    lab[..., 1:] ^= 128  # Pillow keeps a and b as signed bytes
    colour = lab.astype(np.float32) / 255
    grey = colour[..., 0]
    down = np.gradient(grey, axis=0) if grey.shape[0] > 1 else np.zeros_like(grey)
    right = np.gradient(grey, axis=1) if grey.shape[1] > 1 else np.zeros_like(grey)
    direction = (np.arctan2(down, right) / np.pi % 1 * DIRECTIONS).astype(np.int64) % DIRECTIONS
    bins = (colour * (BINS - 0.001)).astype(np.int64)  # (H, W, 3)
    histogram = (bins[..., None] == np.arange(BINS)).reshape(*grey.shape, 3 * BINS)
    edges = (direction[..., None] == np.arange(DIRECTIONS)) * np.hypot(down, right)[..., None] * 10
    planes = np.concatenate([histogram, edges, colour], -1, dtype=np.float64)
    table: Array = np.zeros((grey.shape[0] + 1, grey.shape[1] + 1, planes.shape[-1]))
    table[1:, 1:] = planes.cumsum(0).cumsum(1)
    return table


def appearance(table: Array, boxes: Array) -> NDArray[np.float32]:
    """Return the colour histogram of each box, and edges and mean colours on a grid in it: (N, 4) -> (N, 224)."""
    histogram = _means(table[..., : 3 * BINS], boxes) / 3  # (N, 48)
    ticks = np.linspace(0, 1, GRID + 1)
    x = boxes[:, None, 0] + ticks * (boxes[:, 2] - boxes[:, 0])[:, None]  # (N, GRID + 1)
    y = boxes[:, None, 1] + ticks * (boxes[:, 3] - boxes[:, 1])[:, None]
    cells = np.stack(
        [
            np.broadcast_to(x[:, None, :-1], (len(boxes), GRID, GRID)),
            np.broadcast_to(y[:, :-1, None], (len(boxes), GRID, GRID)),
            np.broadcast_to(x[:, None, 1:], (len(boxes), GRID, GRID)),
            np.broadcast_to(y[:, 1:, None], (len(boxes), GRID, GRID)),
        ],
        -1,
    ).reshape(-1, 4)
    grid = _means(table[..., 3 * BINS :], cells).reshape(len(boxes), -1)  # (N, 16 * 11)
    return np.concatenate([histogram, grid], 1).astype(np.float32)


def grid_map(table: Array) -> NDArray[np.float32]:
    """Return the same measures for the cells of a grid over the image, (MAP, MAP, C)."""
    x = np.linspace(0, table.shape[1] - 1, MAP + 1)
    y = np.linspace(0, table.shape[0] - 1, MAP + 1)
    cells = np.array([[x[j], y[i], x[j + 1], y[i + 1]] for i in range(MAP) for j in range(MAP)])
    return _means(table, cells).reshape(MAP, MAP, -1).astype(np.float32)


def whole_box(image: NDArray[np.uint8]) -> Array:
    """Return the box of a whole image, (1, 4)."""
    return np.array([[0.0, 0.0, image.shape[1], image.shape[0]]])


def _means(table: Array, boxes: Array) -> Array:
    """Return the mean of each plane over each box, widened to at least one pixel: (N, 4) -> (N, C)."""
    height, width = table.shape[0] - 1, table.shape[1] - 1
    x1, y1 = np.floor(boxes[:, 0]).astype(int).clip(0, width - 1), np.floor(boxes[:, 1]).astype(int).clip(0, height - 1)
    x2 = np.maximum(np.round(boxes[:, 2]).astype(int), x1 + 1).clip(1, width)
    y2 = np.maximum(np.round(boxes[:, 3]).astype(int), y1 + 1).clip(1, height)
    sums = table[y2, x2] - table[y1, x2] - table[y2, x1] + table[y1, x1]
    means: Array = sums / ((x2 - x1) * (y2 - y1))[:, None]
    return means
