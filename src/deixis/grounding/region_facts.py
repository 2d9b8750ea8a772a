"""What can be said of a region without knowing what is in it: scores of the extractor, size, place, shape."""

from __future__ import annotations

import torch
from torch import Tensor

from deixis.data.batch import RegionBatch

FACTS = 20
"""How many numbers :func:`region_facts` gives."""


def region_facts(regions: RegionBatch) -> Tensor:
    """Return facts about each region, all of the order of 1, (B, N, FACTS). Padded regions have arbitrary values.

    A weighted sum of them is a log-linear prior over regions: logarithms of scores and size with their squares give
    words preferred sizes, squared distances from the middle give them places.
    """
    boxes = regions.boxes_normalised.clamp(0, 1)  # (B, N, 4)
    width, height = (boxes[..., 2:] - boxes[..., :2]).clamp(min=1e-3).unbind(-1)
    area = (width * height).clamp(min=1e-4).log()
    shape = (height / width).log()
    x, y = ((boxes[..., :2] + boxes[..., 2:]) / 2).unbind(-1)
    thing = regions.objectness.clamp(min=1e-5).log() / 3
    part = regions.regionness if regions.regionness is not None else regions.objectness
    whole = ((width > 0.98) & (height > 0.98)).to(area)
    touches = torch.cat([boxes[..., :2] < 0.02, boxes[..., 2:] > 0.98], -1).to(area)  # (B, N, 4)
    scalars = [
        thing,
        thing**2,
        part.clamp(min=1e-3).log(),
        area,
        area**2 / 3,
        x,
        y,
        4 * (x - 0.5) ** 2,
        4 * (y - 0.5) ** 2,
        shape,
        shape**2,
        whole,
    ]
    return torch.cat([torch.stack(scalars, -1), touches, boxes], -1)
