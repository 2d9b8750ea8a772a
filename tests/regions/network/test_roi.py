"""RoIAlign against a slow loop that follows the definition."""

from __future__ import annotations

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from deixis.regions.network.roi import roi_align


def bilinear(plane: Tensor, x: float, y: float) -> float:
    """The value of a plane (H, W) at a point; pixel centres at half-integers, the border repeats."""
    height, width = plane.shape
    x, y = min(max(x - 0.5, 0), width - 1), min(max(y - 0.5, 0), height - 1)
    left, top = math.floor(x), math.floor(y)
    right, bottom = min(left + 1, width - 1), min(top + 1, height - 1)
    upper = plane[top, left] * (1 - (x - left)) + plane[top, right] * (x - left)
    lower = plane[bottom, left] * (1 - (x - left)) + plane[bottom, right] * (x - left)
    return float(upper * (1 - (y - top)) + lower * (y - top))


def slow_roi_align(plane: Tensor, box: list[float], scale: float, bins: int, samples: int) -> Tensor:
    x1, y1, x2, y2 = (value * scale for value in box)
    out = torch.zeros(bins, bins)
    for row in range(bins):
        for column in range(bins):
            reads = []
            for i in range(samples):
                for j in range(samples):
                    y = y1 + (row + (i + 0.5) / samples) * (y2 - y1) / bins
                    x = x1 + (column + (j + 0.5) / samples) * (x2 - x1) / bins
                    reads.append(bilinear(plane, x, y))
            out[row, column] = sum(reads) / len(reads)
    return out


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), bins=st.integers(1, 4), samples=st.integers(1, 3))
def test_against_slow_loop(seed: int, bins: int, samples: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    maps = torch.randn(2, 3, 5, 7, generator=draw)
    corners = torch.rand(4, 4, generator=draw) * 60 - 5  # some boxes hang over the border of the 56 x 40 input
    boxes = torch.cat([torch.minimum(corners[:, :2], corners[:, 2:]), torch.maximum(corners[:, :2], corners[:, 2:])], 1)
    image_of = torch.tensor([0, 1, 1, 0])
    fast = roi_align(maps, boxes, image_of, 1 / 8, bins, samples)
    for at in range(4):
        for channel in range(3):
            slow = slow_roi_align(maps[image_of[at], channel], boxes[at].tolist(), 1 / 8, bins, samples)
            torch.testing.assert_close(fast[at, channel], slow, atol=1e-5, rtol=1e-4)


def test_whole_map_in_one_bin_per_pixel_is_the_map() -> None:
    maps = torch.randn(1, 2, 4, 4)
    pooled = roi_align(maps, torch.tensor([[0.0, 0.0, 64.0, 64.0]]), torch.tensor([0]), 1 / 16, 4, 1)
    torch.testing.assert_close(pooled, maps)


def test_gradient_of_maps_is_exact() -> None:
    maps = torch.randn(1, 2, 4, 5, dtype=torch.float32, requires_grad=True)
    boxes, image_of = torch.tensor([[3.0, 2.0, 30.0, 28.0]]), torch.tensor([0])
    (gradient,) = torch.autograd.grad(roi_align(maps, boxes, image_of, 1 / 8, 2).sum(), maps)
    assert math.isclose(float(gradient.sum()), 2 * 2 * 2, rel_tol=1e-5)  # weights of a cell add up to one


def test_no_boxes() -> None:
    assert roi_align(torch.zeros(1, 3, 4, 4), torch.zeros(0, 4), torch.zeros(0, dtype=torch.long), 1.0, 2).shape == (
        0,
        3,
        2,
        2,
    )
