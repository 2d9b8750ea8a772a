"""Box voting: a box moves to the mean of the boxes around it, each weighted by how much the phrase likes it.

Detectors refine their boxes so (Gidaris and Komodakis, ICCV 2015). Here the votes are a phrase's own shares
of attention, so that the same region may move one way for "a man" and another for "a man on a horse".
"""

from __future__ import annotations

import torch
from torch import Tensor

from deixis.geometry import iou


def voted_boxes(logits: Tensor, boxes: Tensor, overlap: float = 0.5, temperature: float = 2.0) -> Tensor:
    """Return each region's box after the vote of the regions that overlap it, (P, N) and (P, N, 4) -> (P, N, 4).

    Args:
        logits: Scores of regions, -inf for padding, which has no vote.
        boxes: The regions' boxes for each phrase.
        overlap: Intersection over union from which a region votes; a region always votes for itself.
        temperature: Above 1 the votes are more equal than the scores.
    """
    votes = torch.softmax(logits.float() / temperature, -1)  # (P, N)
    place = torch.arange(boxes.shape[1], device=boxes.device)
    own = place.unsqueeze(1) == place  # (N, N)
    near = (iou(boxes, boxes) >= overlap) | own  # (P, N, N)
    weights = near * votes.clamp(min=1e-12).unsqueeze(-2)
    return (weights / weights.sum(-1, keepdim=True)) @ boxes.float()
