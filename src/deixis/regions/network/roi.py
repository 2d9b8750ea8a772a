"""RoIAlign (He et al., Mask R-CNN, section 3) in plain torch, for many boxes on a few maps at once."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def roi_align(maps: Tensor, boxes: Tensor, image_of: Tensor, scale: float, bins: int, samples: int = 2) -> Tensor:
    """Average each of `bins` x `bins` cells of every box from `samples` x `samples` bilinear reads of its map.

    Each output cell is one weighted sum of map pixels (four corners per read), so the whole layer is a single
    `embedding_bag` over the pixels: quick on a CPU, with the exact gradient for the maps. Boxes get no gradient.

    Args:
        maps: (B, C, H, W).
        boxes: (N, 4), x1 y1 x2 y2 in pixels of the network's input.
        image_of: (N,) which of the B maps each box reads.
        scale: map pixels per input pixel, such as 1/16. Pixel centres lie at half-integers ("aligned").

    Returns:
        (N, C, bins, bins)
    """
    _, channels, height, width = maps.shape
    at = (torch.arange(bins * samples, device=boxes.device, dtype=torch.float32) + 0.5) / (bins * samples)  # (S,)
    corners = boxes.float() * scale
    x = corners[:, None, 0] + at * (corners[:, 2] - corners[:, 0])[:, None] - 0.5  # (N, S)
    y = corners[:, None, 1] + at * (corners[:, 3] - corners[:, 1])[:, None] - 0.5
    left, right, x_share = _neighbours(x, width)
    top, bottom, y_share = _neighbours(y, height)

    def pairs(rows: Tensor, columns: Tensor) -> Tensor:  # (N, S), (N, S) -> (N, bins, bins, samples, samples)
        split = (-1, bins, samples)
        return rows.view(split)[:, :, None, :, None] + columns.view(split)[:, None, :, None, :]

    def products(rows: Tensor, columns: Tensor) -> Tensor:
        split = (-1, bins, samples)
        return rows.view(split)[:, :, None, :, None] * columns.view(split)[:, None, :, None, :]

    first = (image_of * (height * width))[:, None]  # (N, 1) where each box's map begins
    top, bottom = first + top * width, first + bottom * width
    index = torch.stack([pairs(top, left), pairs(top, right), pairs(bottom, left), pairs(bottom, right)], -1)
    weight = torch.stack(
        [
            products(1 - y_share, 1 - x_share),
            products(1 - y_share, x_share),
            products(y_share, 1 - x_share),
            products(y_share, x_share),
        ],
        -1,
    )
    reads = 4 * samples * samples
    pixels = maps.permute(0, 2, 3, 1).reshape(-1, channels)  # free for channels-last maps
    weights = (weight / (samples * samples)).reshape(-1, reads).to(pixels.dtype)
    pooled = _weighted_sums(index.reshape(-1, reads), pixels, weights)
    return pooled.view(-1, bins, bins, channels).permute(0, 3, 1, 2)


def _weighted_sums(index: Tensor, pixels: Tensor, weights: Tensor) -> Tensor:
    """Sum pixels (P, C) at ``index`` (M, reads) with their weights, (M, C)."""
    if torch.onnx.is_in_onnx_export():  # ONNX has no bags
        return (weights.unsqueeze(1) @ pixels[index]).squeeze(1)
    return F.embedding_bag(index, pixels, mode="sum", per_sample_weights=weights)


def _neighbours(at: Tensor, side: int) -> tuple[Tensor, Tensor, Tensor]:
    """The two pixels around each coordinate and the share of the second; outside the map the border repeats."""
    at = at.clamp(0, side - 1)
    low = at.floor().long()
    return low, (low + 1).clamp(max=side - 1), at - low
