"""Boxes: areas, overlap, unions, deltas, suppression, scaling. Every function takes torch tensors or numpy arrays.

Torch is imported where a tensor comes in: whoever has arrays alone, such as the runner of ONNX files, needs no torch.
Boxes are x1 y1 x2 y2 along the last axis. With ``plus_one`` a box that ends at pixel x2 includes that pixel, so its
width is x2 - x1 + 1: the convention of the metrics of GVD and InfoGround; without it, coordinates are continuous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Boxes = TypeVar("Boxes", "Tensor", NDArray[np.float64])


def area(boxes: Boxes, *, plus_one: bool = False) -> Boxes:
    """Return the area of each box, (..., 4) -> (...). Boxes turned inside out have area 0."""
    extra = 1 if plus_one else 0
    width = (boxes[..., 2] - boxes[..., 0] + extra).clip(min=0)
    height = (boxes[..., 3] - boxes[..., 1] + extra).clip(min=0)
    areas: Boxes = width * height
    return areas


def _shared_area(a: Boxes, b: Boxes, plus_one: bool) -> Boxes:
    extra = 1 if plus_one else 0
    if isinstance(a, np.ndarray):
        low, high = np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:])
    else:
        import torch

        low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    sides = (high - low + extra).clip(min=0)  # (..., 2)
    areas: Boxes = sides[..., 0] * sides[..., 1]
    return areas


def iou_aligned(a: Boxes, b: Boxes, *, plus_one: bool = False) -> Boxes:
    """Return the intersection over union of boxes at the same place, with broadcasting: (..., 4), (..., 4) -> (...)."""
    shared = _shared_area(a, b, plus_one)
    total = area(a, plus_one=plus_one) + area(b, plus_one=plus_one) - shared
    overlap: Boxes = shared / total.clip(min=1e-9)
    return overlap


def iou(a: Boxes, b: Boxes, *, plus_one: bool = False) -> Boxes:
    """Return the intersection over union of every pair, (N, 4), (M, 4) -> (N, M)."""
    return iou_aligned(a[..., :, None, :], b[..., None, :, :], plus_one=plus_one)


def inside_share(a: Boxes, b: Boxes) -> Boxes:
    """Return which share of each box of ``a`` lies inside each box of ``b``, (N, 4), (M, 4) -> (N, M)."""
    shared = _shared_area(a[..., :, None, :], b[..., None, :, :], plus_one=False)
    shares: Boxes = shared / area(a)[..., :, None].clip(min=1e-9)
    return shares


def union_box(boxes: Boxes) -> Boxes:
    """Return the smallest box around all, (N, 4) -> (4,)."""
    if len(boxes) == 0:
        raise ValueError("the union of no boxes is not a box")
    if isinstance(boxes, np.ndarray):
        return np.concatenate([boxes[:, :2].min(0), boxes[:, 2:].max(0)])
    import torch

    return torch.cat([boxes[:, :2].amin(0), boxes[:, 2:].amax(0)])


def centres(boxes: Boxes) -> Boxes:
    """Return the centre of each box as x y, (..., 4) -> (..., 2)."""
    return (boxes[..., :2] + boxes[..., 2:]) / 2


def encode_deltas(
    boxes: Boxes, targets: Boxes, weights: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
) -> Boxes:
    """Return the offsets that move ``boxes`` onto ``targets``: shifts in box sizes and log ratios, (..., 4)."""
    size, goal = _sizes(boxes), _sizes(targets)
    shift = (centres(targets) - centres(boxes)) / size
    if isinstance(boxes, np.ndarray):
        return np.concatenate([shift, np.log(goal / size)], -1) * np.asarray(weights, dtype=boxes.dtype)
    import torch

    return torch.cat([shift, torch.log(goal / size)], -1) * boxes.new_tensor(weights)


LARGEST_LOG_RATIO = 4.135  # log(1000 / 16): keeps exp() of a wild prediction finite


def decode_deltas(
    boxes: Boxes, deltas: Boxes, weights: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
) -> Boxes:
    """Move ``boxes`` by offsets as :func:`encode_deltas` gives them, (..., 4)."""
    size = _sizes(boxes)
    if isinstance(boxes, np.ndarray):
        deltas = deltas / np.asarray(weights, dtype=boxes.dtype)
        new_size = np.exp(deltas[..., 2:].clip(max=LARGEST_LOG_RATIO)) * size
        middle = centres(boxes) + deltas[..., :2] * size
        return np.concatenate([middle - new_size / 2, middle + new_size / 2], -1)
    import torch

    deltas = deltas / boxes.new_tensor(weights)
    new_size = torch.exp(deltas[..., 2:].clip(max=LARGEST_LOG_RATIO)) * size
    middle = centres(boxes) + deltas[..., :2] * size
    return torch.cat([middle - new_size / 2, middle + new_size / 2], -1)


def _sizes(boxes: Boxes) -> Boxes:
    sides: Boxes = (boxes[..., 2:] - boxes[..., :2]).clip(min=1e-6)
    return sides


def scale(boxes: Boxes, old: tuple[int, int], new: tuple[int, int]) -> Boxes:
    """Carry boxes from an image of size ``old`` (width, height) to the same image at size ``new``."""
    x, y = new[0] / old[0], new[1] / old[1]
    factor = np.array([x, y, x, y]) if isinstance(boxes, np.ndarray) else boxes.new_tensor([x, y, x, y])
    scaled: Boxes = boxes * factor
    return scaled


def clip_to(boxes: Boxes, size: tuple[int, int]) -> Boxes:
    """Cut boxes at the border of an image of ``size`` (width, height)."""
    width, height = size
    if isinstance(boxes, np.ndarray):
        cut: Boxes = np.minimum(boxes.clip(min=0), np.array([width, height, width, height]))
        return cut
    import torch

    limit = boxes.new_tensor([width, height, width, height])
    return torch.minimum(boxes.clip(min=0), limit)


def normalise(boxes: Boxes, size: tuple[int, int]) -> Boxes:
    """Return boxes as shares of the image's width and height, 0 to 1."""
    return scale(boxes, size, (1, 1))


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Greedy non-maximum suppression: keep the best box, drop those that overlap it by more than ``threshold``, go on.

    Returns the indices kept, best score first; equal scores keep their order, so the result is deterministic.
    """
    import torch

    order = torch.argsort(scores, descending=True, stable=True)
    if len(order) == 0:
        return order
    overlap = (iou(boxes[order], boxes[order]) > threshold).numpy(force=True)  # (N, N)
    alive = np.ones(len(order), dtype=bool)
    kept: list[int] = []
    for at in range(len(order)):
        if alive[at]:
            kept.append(at)
            alive[at + 1 :] &= ~overlap[at, at + 1 :]
    return order[torch.tensor(kept, device=order.device)]
