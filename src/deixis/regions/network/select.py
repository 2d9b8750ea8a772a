"""From candidates of all cells to the regions that are kept: two scores, one ranking, non-maximum suppression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from deixis.geometry import iou, nms
from deixis.regions.network.proposals import LYING, THING

CANDIDATES = 256  # of each kind, before suppression
SAME = 0.6  # candidates that overlap a kept box this much speak for it


@dataclass(frozen=True, slots=True)
class Ranking:
    """How much a thing's and a region's score count when they compete for a place, and when two boxes are the same."""

    thing: float = 1.0
    region: float = 1.0
    small: float = 0.0
    """Exponent of a box's share of the image: captions name large regions more often than small ones."""
    suppress: float = 0.7
    vote: float = 1.0
    """Overlap from which on candidates move a kept box towards themselves; 1 leaves boxes as they were proposed."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The boxes of one image, best first, the whole image last, with both scores."""

    boxes: Tensor  # (N, 4) in input pixels
    objectness: Tensor  # (N,)
    regionness: Tensor  # (N,)


Suppress = Callable[[Tensor, Tensor, float], Tensor]
"""From boxes (N, 4), scores (N,) and the overlap from which on the lesser of two goes to the rows that stay."""


def select(
    logits: Tensor,
    boxes: Tensor,
    shape: tuple[int, int],
    count: int,
    ranking: Ranking,
    suppress: Suppress = nms,
) -> Kept:
    """Choose at most `count` regions of one image, and the whole of it, from logits (A, 3) and boxes (A, 3, 4).

    Boxes are in pixels of `shape`, the input's width and height. A kept box has both scores whichever kind of candidate
    it came from: each is the best of the candidates of that kind that coincide with it, weighted by how well they do.
    """
    width, height = shape
    whole = image_box(width, height, boxes)  # (1, 4)
    things = _best(logits[:, THING], boxes[:, THING])
    regions = _best(logits[:, LYING:].flatten(), boxes[:, LYING:].reshape(-1, 4))
    thing_boxes, region_boxes = (
        torch.minimum(part[1].clamp(min=0), whole[:, [2, 3, 2, 3]]) for part in (things, regions)
    )
    thing_scores, region_scores = things[0], regions[0]
    both = torch.cat([thing_boxes, region_boxes])
    share = ((both[:, 2] - both[:, 0]) * (both[:, 3] - both[:, 1]) / (width * height)).clamp(min=1e-4)
    rank = torch.cat([thing_scores * ranking.thing, region_scores * ranking.region]) * share**ranking.small
    best = both[suppress(both, rank, ranking.suppress)[:count]]
    chosen = torch.cat([best if ranking.vote >= 1 else _voted(best, both, rank, ranking.vote), whole])
    return Kept(
        chosen,
        _spoken_for(chosen, thing_boxes, thing_scores) ** 2,  # the head learns the square root of objectness
        _spoken_for(chosen, region_boxes, region_scores),
    )


def _voted(kept: Tensor, boxes: Tensor, rank: Tensor, least: float) -> Tensor:
    """Boxes as the mean of the candidates that coincide with them, by rank and squared overlap, (N, 4).

    Box voting (Gidaris and Komodakis, ICCV 2015, section 4.3): neighbouring cells propose one thing with errors of
    their own, and the mean of their boxes fits better than the highest ranked of them.
    """
    overlap = iou(kept, boxes)  # (N, candidates)
    weight = torch.where(overlap >= least, overlap**2 * rank, torch.zeros(()))
    mass = weight.sum(1, keepdim=True)  # (N, 1); none for a box without an area, which overlaps not even itself
    return torch.where(mass > 0, weight @ boxes / mass.clamp(min=1e-9), kept)


def image_box(width: int, height: int, like: Tensor) -> Tensor:
    """The box of a whole image, (1, 4); built so that a traced network takes the sides of each image anew."""
    sides = [torch.as_tensor(side, device=like.device).to(like.dtype) for side in (0, 0, width, height)]
    return torch.stack(sides).unsqueeze(0)


def _best(logits: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
    """The best candidates of one kind with their scores; stable, so that equal images give equal answers."""
    order = torch.argsort(logits, descending=True, stable=True)[:CANDIDATES]
    return torch.sigmoid(logits[order]), boxes[order]


def _spoken_for(chosen: Tensor, boxes: Tensor, scores: Tensor) -> Tensor:
    overlap = iou(chosen, boxes)  # (N, candidates)
    return torch.where(overlap >= SAME, overlap * scores, torch.zeros(())).amax(1)
