"""The proposal head: for every cell of the pyramid three candidate boxes, without anchors.

The first candidate of a cell is a *thing* (what a detector would find), the other two are *regions*: one lying, one
standing. Two region candidates, because parts and stuff nest: a belt, a shirt and a torso share their centre. Each
candidate has a score and a box given by the offset of its centre and the logarithm of its sides.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from deixis.regions.network.pyramid import STRIDES, Separable
from deixis.regions.network.trunks.layers import pointwise

KINDS = ("thing", "lying", "standing")
THING, LYING, STANDING = range(3)
# Sides, in strides, that a candidate has when the network says nothing: (kind, width and height).
PRIOR_SIDES = ((4.0, 4.0), (6.0, 3.0), (3.0, 6.0))
LARGEST_LOG = 4.0  # exp(4) = 55 times the prior: no box is larger, and no exponent overflows
LOW_PRIOR = -4.0  # scores start near .02: most cells hold nothing


@dataclass(frozen=True, slots=True)
class Cells:
    """Where the cells of all levels lie, in pixels of the network's input; A cells in order of level, row, column."""

    centres: Tensor  # (A, 2)
    strides: Tensor  # (A,)
    levels: Tensor  # (A,) index into STRIDES


def cells_of(height: int, width: int, device: torch.device | None = None) -> Cells:
    """The cells for an input of this size."""
    centres, strides, levels = [], [], []
    for level, stride in enumerate(STRIDES):
        rows, columns = ((side + stride - 1) // stride for side in (height, width))  # rounded up
        y, x = torch.meshgrid(torch.arange(rows, device=device), torch.arange(columns, device=device), indexing="ij")
        centres.append((torch.stack([x, y], -1).reshape(-1, 2).float() + 0.5) * stride)
        strides.append(torch.full((rows * columns,), float(stride), device=device))
        levels.append(torch.full((rows * columns,), level, device=device))
    return Cells(torch.cat(centres), torch.cat(strides), torch.cat(levels))


def decode(offsets: Tensor, cells: Cells) -> Tensor:
    """Turn offsets (B, A, 3, 4) into boxes x1 y1 x2 y2 in input pixels (B, A, 3, 4)."""
    stride = cells.strides[:, None, None]  # (A, 1, 1)
    middle = cells.centres[:, None] + offsets[..., :2] * stride
    prior = offsets.new_tensor(PRIOR_SIDES) * stride  # (A, 3, 2)
    half = torch.exp(offsets[..., 2:].clamp(max=LARGEST_LOG)) * prior / 2
    return torch.cat([middle - half, middle + half], -1)


def encode(boxes: Tensor, cells: Cells) -> Tensor:
    """The offsets that :func:`decode` turns into these boxes (B, A, 3, 4)."""
    stride = cells.strides[:, None, None]
    sides = (boxes[..., 2:] - boxes[..., :2]).clamp(min=1e-3)
    middle = (boxes[..., :2] + boxes[..., 2:]) / 2
    prior = boxes.new_tensor(PRIOR_SIDES) * stride
    return torch.cat([(middle - cells.centres[:, None]) / stride, torch.log(sides / prior)], -1)


class ProposalHead(nn.Module):
    """Scores and boxes from the pyramid; each level has its own small tower."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.towers = nn.ModuleList(
            nn.Sequential(*(Separable(width, 5, shortcut=True) for _ in range(depth))) for _ in STRIDES
        )
        self.scores = nn.ModuleList(nn.Conv2d(width, len(KINDS), 1) for _ in STRIDES)
        self.offsets = nn.ModuleList(nn.Conv2d(width, 4 * len(KINDS), 1) for _ in STRIDES)
        for score, offset in zip(self.scores, self.offsets, strict=True):
            nn.init.normal_(score.weight, std=0.01)  # type: ignore[arg-type]
            nn.init.constant_(score.bias, LOW_PRIOR)  # type: ignore[arg-type]
            nn.init.normal_(offset.weight, std=0.01)  # type: ignore[arg-type]
            nn.init.zeros_(offset.bias)  # type: ignore[arg-type]

    def forward(self, pyramid: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Give score logits (B, A, 3) and offsets (B, A, 3, 4) of all cells, in the order of :func:`cells_of`."""
        scores, offsets = [], []
        for level, tower, score, offset in zip(pyramid, self.towers, self.scores, self.offsets, strict=True):
            batch = len(level)
            x = tower(level)
            scores.append(pointwise(score, x).permute(0, 2, 3, 1).reshape(batch, -1, len(KINDS)))
            offsets.append(pointwise(offset, x).permute(0, 2, 3, 1).reshape(batch, -1, len(KINDS), 4))
        return torch.cat(scores, 1).float(), torch.cat(offsets, 1).float()
