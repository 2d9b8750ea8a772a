"""Whole things for what is part of them: "blue shirt" answered with the one who wears it.

In expressions that refer to things ("blue shirt", "the gray hair") people name a part and mean the whole. Each whole
thing then gets the shares of the regions that lie within it, times how surely it is one whole thing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from deixis.geometry import inside_share

LEAST = 1e-6


def wearer_logits(logits: Tensor, boxes: Tensor, objectness: Tensor) -> Tensor:
    """Return how probably each region is the whole whose part a phrase names, in logarithms, (P, N) -> (P, N).

    Args:
        logits: Scores of regions for the part, -inf for padding, which stays so.
        boxes: The regions' boxes, (P, N, 4).
        objectness: How surely each region is one whole thing, (P, N).
    """
    within = inside_share(boxes.float(), boxes.float())  # (P, N, N): how much of the first lies in the second
    shares = torch.softmax(logits.float(), -1)
    carried = torch.einsum("pn,pnm->pm", shares, within**2)  # squared: what sticks out belongs to somebody else
    found = carried.clamp(min=LEAST).log() + objectness.float().clamp(min=LEAST).log()
    return found.masked_fill(~torch.isfinite(logits), -torch.inf)
