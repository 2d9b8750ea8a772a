"""Boxes that move: offsets, and what a model learns them from without any human box.

ReIR (Liu et al., CVPR 2021, section 3.3, equation 15 and figure 3): the proposal a phrase likes best teaches its
neighbours where to go.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.geometry import decode_deltas, encode_deltas, iou_aligned
from deixis.grounding.reir.forward_pass import Level

DELTA_WEIGHTS = (10.0, 10.0, 5.0, 5.0)
"""Offsets are learned in these units, so that all four vary about as much (Fast R-CNN's)."""
SAME = 1 - 1e-6
"""Overlap from which two boxes are one; rounding keeps equal boxes from exactly 1."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Who is taught: near enough to the best proposal; in the released program, less liked too and not the same."""

    overlap: float = 0.6
    """tau of the paper."""
    gap: float = 0.0
    """By how much the best proposal's attention must exceed the neighbour's; .1 in the released program, not in
    the paper."""
    anchor: bool = True
    """Whether the best proposal itself is taught to stay, as equation 15 says: its overlap with itself is above tau and
    its offset 0. The released program leaves it out, so that what the answered box does is only ever extrapolated."""

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < 1 or not 0 <= self.gap <= 1:
            raise ValueError("overlap should lie in [0, 1) and gap in [0, 1]")


def move(boxes: Tensor, offsets: Tensor, sizes: Tensor) -> Tensor:
    """Move boxes by offsets and cut them at the image's border, (..., N, 4), (..., N, 4), (..., 2) -> (..., N, 4)."""
    moved = decode_deltas(boxes, offsets, DELTA_WEIGHTS)
    limit = torch.cat([sizes, sizes], -1).unsqueeze(-2)
    return torch.minimum(moved.clamp(min=0), limit.to(moved.dtype))


def self_taught_targets(level: Level, near: Neighbourhood) -> tuple[Tensor, Tensor]:
    """Return the offsets of each proposal to its phrase's best one, (P, M, 4), and which of them count, (P, M)."""
    boxes, weights = level.boxes.detach(), level.weights.detach()
    best = weights.masked_fill(~level.mask, -1.0).argmax(1)  # (P,)
    row = torch.arange(len(boxes), device=boxes.device)
    top = boxes[row, best].unsqueeze(1)  # (P, 1, 4)
    overlap = iou_aligned(boxes, top)  # (P, M)
    gap = weights[row, best].unsqueeze(1) - weights
    same = overlap >= SAME
    taught = (overlap >= near.overlap) & ~same & (gap >= near.gap)
    if near.anchor:
        taught = taught | same
    taught = taught & level.mask
    return encode_deltas(boxes, top.expand_as(boxes), DELTA_WEIGHTS), taught


def self_taught_losses(level: Level, near: Neighbourhood) -> Tensor:
    """Return each phrase's smooth-L1 loss (beta 1), the mean over its taught proposals (one term of equation 15), (P,).

    A proposal that is not taught has its own prediction as target, so it adds nothing. Attention is only a judge here:
    no gradient goes through it.
    """
    if level.offsets is None:
        return level.weights.new_zeros(len(level.weights))
    targets, taught = self_taught_targets(level, near)
    each = F.smooth_l1_loss(level.offsets, targets, reduction="none", beta=1.0).sum(-1)  # (P, M)
    return torch.where(taught, each, 0.0).sum(1) / taught.sum(1).clamp(min=1)
