"""What can be said of a region without knowing what is in it: scores of the extractor, size, place, shape."""

from __future__ import annotations

import torch
from torch import Tensor

from deixis.data.batch import RegionBatch
from deixis.geometry import area, inside_share

FACTS = 21
"""How many numbers :func:`region_facts` gives."""


def region_facts(regions: RegionBatch) -> Tensor:
    """Return facts about each region, all of the order of 1, (B, N, FACTS). Padded regions have arbitrary values.

    A weighted sum of them is a log-linear prior over regions: logarithms of scores and size with their squares give
    words preferred sizes, squared distances from the middle give them places.
    """
    boxes = regions.boxes_normalised.clamp(0, 1)  # (B, N, 4)
    width, height = (boxes[..., 2:] - boxes[..., :2]).clamp(min=1e-3).unbind(-1)
    size = (width * height).clamp(min=1e-4).log()
    shape = (height / width).log()
    x, y = ((boxes[..., :2] + boxes[..., 2:]) / 2).unbind(-1)
    thing = regions.objectness.clamp(min=1e-5).log() / 3
    part = regions.regionness if regions.regionness is not None else regions.objectness
    whole = ((width > 0.98) & (height > 0.98)).to(size)
    touches = torch.cat([boxes[..., :2] < 0.02, boxes[..., 2:] > 0.98], -1).to(size)  # (B, N, 4)
    scalars = [
        thing,
        thing**2,
        part.clamp(min=1e-3).log(),
        size,
        size**2 / 3,
        x,
        y,
        4 * (x - 0.5) ** 2,
        4 * (y - 0.5) ** 2,
        shape,
        shape**2,
        whole,
        attached(regions).clamp(min=0.03).log(),
    ]
    return torch.cat([torch.stack(scalars, -1), touches, boxes], -1)


def attached(regions: RegionBatch) -> Tensor:
    """Return how surely each region is part of a larger thing, 0 to 1, (B, N): a shirt in the box of its wearer.

    That is the best, over regions of at least twice the size, of the root of their objectness times the share of this
    region that lies inside.
    """
    boxes = regions.boxes.float()
    sizes = area(boxes).clamp(min=1e-6)
    larger = sizes.unsqueeze(-1) < 0.5 * sizes.unsqueeze(-2)  # (B, N, N)
    thing = (regions.objectness.float().clamp(min=0).sqrt() * regions.mask).unsqueeze(-2)
    return (inside_share(boxes, boxes) * thing * larger).amax(-1)
