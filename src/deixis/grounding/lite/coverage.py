"""Coverage: which box holds the evidence for a word, all of it and little else.

A word's evidence is spread over the picture, and each region is asked how well it covers it: the evidence inside the
box over the evidence anywhere plus the room in the box without any, an intersection over union of soft areas. Evidence
for "beach" lies everywhere, so a large box fits; a face holds only a part of the evidence for "man". Nothing is learnt
here: what a word tells about extent follows from what regions of all sizes say about the word.
"""

from __future__ import annotations

import torch
from torch import Tensor

SMALL = 1e-3


def cell_masks(boxes_normalised: Tensor, mask: Tensor, grid: int) -> Tensor:
    """Return the share of each cell of a grid that lies in each box, (B, N, 4) and (B, N) -> (B, N, grid * grid)."""
    edge = torch.arange(grid, device=boxes_normalised.device)
    boxes = boxes_normalised.unsqueeze(-1) * grid  # (B, N, 4, 1)
    across = (torch.minimum(boxes[..., 2, :], edge + 1) - torch.maximum(boxes[..., 0, :], edge)).clamp(0, 1)
    down = (torch.minimum(boxes[..., 3, :], edge + 1) - torch.maximum(boxes[..., 1, :], edge)).clamp(0, 1)
    cells = down.unsqueeze(-1) * across.unsqueeze(-2)  # (B, N, grid, grid)
    return cells.flatten(-2) * mask.unsqueeze(-1)


def coverage(
    scores: Tensor,
    cells: Tensor,
    mask: Tensor,
    middle: Tensor | float = 0.6,
    sharpness: Tensor | float = 8.0,
    small: float = 0.5,
) -> Tensor:
    """Return the logarithm of how well each region covers the evidence, (P, N).

    Args:
        scores: How much each region looks like the word, on any scale, (P, N).
        cells: The cells of the regions, one row of regions for each score, (P, N, G).
        mask: Which regions are real, (P, N).
        middle: A region is evidence when its score is this far from the median towards the best of its image; a number
            or one for each row, (P, 1). The less it asks for, the larger the boxes.
        sharpness: How fast that happens, over the same distance.
        small: Small regions say more precisely where: a region's vote for its cells is divided by its area to this
            power.
    """
    in_order = scores.float().masked_fill(~mask, torch.inf).sort(1).values
    median = in_order.gather(1, ((mask.sum(1, keepdim=True) - 1) // 2).clamp(min=0))  # the lower of two in the middle
    reach = (scores.masked_fill(~mask, -torch.inf).amax(1, keepdim=True) - median).clamp(min=SMALL)
    evidence = torch.sigmoid(sharpness * ((scores - median) / reach - middle)) * mask  # (P, N)
    sizes = cells.sum(-1)  # (P, N)
    vote = mask / (sizes / cells.shape[-1]).clamp(min=0.01) ** small
    heat = torch.einsum("pn,png->pg", evidence * vote, cells)
    heat = heat / torch.einsum("pn,png->pg", vote, cells).clamp(min=SMALL)  # (P, G)
    heat = heat / heat.amax(1, keepdim=True).clamp(min=SMALL)
    inside = torch.einsum("png,pg->pn", cells, heat)
    union = heat.sum(1, keepdim=True) + sizes - inside
    return ((inside + SMALL) / (union + SMALL)).log()
