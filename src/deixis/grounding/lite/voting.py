"""Box voting: a box moves to the mean of the boxes around it, and the answer is the box that most shares agree with.

Detectors refine their boxes so (Gidaris and Komodakis, ICCV 2015). Here the votes are a phrase's own shares
of attention, so that the same region may move one way for "a man" and another for "a man on a horse". And the best
answer is not always the likeliest region: one that overlaps many likely ones by half is more probably right (a Bayes
decision for "right from an overlap of .5 on").
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


def agreed_first(
    logits: Tensor, moved: Tensor, boxes: Tensor, overlap: float, sharpness: float = 20.0, temperature: float = 1.5
) -> tuple[Tensor, Tensor]:
    """Put the box that is most probably right first, after a vote of all that overlap it, (P, N) and (P, N, 4).

    It changes places with the likeliest; the others keep their order and boxes, so that a list of answers still holds
    different ones.

    Args:
        logits: Scores of regions, -inf for padding, which is never chosen.
        moved: The boxes that the others are answered with, (P, N, 4).
        boxes: Where the scores were given, (P, N, 4).
        overlap: Intersection over union from which a region has a vote on the first box.
        sharpness: How steeply agreement rises about an overlap of one half.
        temperature: Above 1 the shares are more equal than the scores.
    """
    wide = voted_boxes(logits, boxes, overlap)
    shares = torch.softmax(logits.float() / temperature, -1)  # (P, N)
    agreement = torch.sigmoid(sharpness * (iou(wide, boxes.float()) - 0.5))  # (P, N, N)
    right = (agreement @ shares.unsqueeze(-1)).squeeze(-1)
    right = torch.where(torch.isfinite(logits), right, -torch.ones_like(right))
    chosen, likeliest = right.argmax(-1, keepdim=True), logits.argmax(-1, keepdim=True)  # (P, 1)
    first, other = logits.gather(-1, likeliest), logits.gather(-1, chosen)
    is_chosen = torch.arange(logits.shape[-1], device=logits.device) == chosen  # (P, N)
    ordered = torch.where(is_chosen, first, logits.scatter(-1, likeliest, other))
    return ordered, torch.where(is_chosen.unsqueeze(-1), wide.to(moved), moved)
