"""From generated words and attention to captions whose words have boxes.

The text begins with a capital letter and ends with a full stop; every word's span indexes it exactly. Words the
vocabulary marks groundable get a box per frame: where the model looked when it said them. What to make of several
looks, and priors that need no training, is chosen by :class:`Pointing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from deixis.captioning.search.strategy import Generated
from deixis.data.batch import RegionBatch
from deixis.geometry import iou, union_box
from deixis.text.tokens import sentence_text as sentence_text
from deixis.text.vocabulary import Vocabulary
from deixis.types import Box, GroundedCaption, GroundedWord, box_of


@dataclass(frozen=True, slots=True)
class Pointing:
    """How attention becomes a box. None of it needs training."""

    rule: Literal["auto", "argmax", "union", "soft_vote"] = "auto"
    """``argmax``: the region with the largest mean weight. ``union``: the box around the regions with the largest
    weights. ``soft_vote``: the region that the weights of all regions, shared out by overlap, agree on. ``auto``: for
    distributed attention the box around the best regions of the branches that chose the word (paper 3), else argmax."""
    top: int = 3
    """Regions that ``union`` looks at."""
    agreeing: bool = False
    """``auto`` leaves out branches whose region does not touch the first one's; models say so themselves
    (``attention.union``)."""
    share: float = 0.5
    """``union`` leaves out regions with less than this share of the best one's weight."""
    objectness: float = 0.0
    """Weights are multiplied by objectness ** this: bare attention likes parts of things."""
    regionness: float = 0.0
    """The same with regionness, where the regions have it."""


@dataclass(frozen=True, slots=True)
class Pointed:
    """Where a word points: a box for each frame, and how much weight is behind it."""

    boxes: tuple[Box, ...]
    frames: tuple[int, ...]
    score: float


def point(
    weights: Tensor, voted: Tensor, boxes: Tensor, mask: Tensor, frame: Tensor, pointing: Pointing, *, branches: bool
) -> Pointed:
    """Find the boxes of one word: weights (K, N) after priors, voted (K,), boxes (N, 4), mask (N,), frame (N,)."""
    weights = weights[voted] if bool(voted.any()) else weights
    mean = weights.mean(0).masked_fill(~mask, -1.0)  # (N,)
    found: list[Box] = []
    frames: list[int] = []
    for at in sorted(set(frame[mask].tolist())):
        here = (mask & (frame == at)).nonzero().squeeze(1)  # (n,)
        own = boxes[here]
        if pointing.rule == "union":
            order = mean[here].argsort(descending=True, stable=True)[: pointing.top]
            chosen = order[mean[here][order] >= pointing.share * mean[here][order[0]]]
            box = union_box(own[chosen])
        elif pointing.rule == "soft_vote":
            box = own[(iou(own, own) @ mean[here].clamp(min=0)).argmax()]
        elif pointing.rule == "auto" and branches:
            best = own[weights[:, here].argmax(1)]  # (K, 4)
            box = union_box(best[iou(best[:1], best)[0] > 0] if pointing.agreeing else best)
        else:
            box = own[mean[here].argmax()]
        found.append(box_of(box.tolist()))
        frames.append(int(at))
    return Pointed(tuple(found), tuple(frames), float(mean.max().clamp(min=0)))


def grounded_captions(
    generated: Generated,
    regions: RegionBatch,
    vocabulary: Vocabulary,
    pointing: Pointing = Pointing(),  # noqa: B008 - frozen
    *,
    branches: bool = False,
    rank: int = 0,
) -> list[GroundedCaption]:
    """Return the caption of each image (the ``rank``-th best) with the boxes of its words.

    ``branches``: whether the rows of attention are branches of distributed attention, each with a word of its own.
    """
    prior = priors(regions, pointing).cpu()  # (B, N)
    boxes, mask, frame = regions.boxes.float().cpu(), regions.mask.cpu(), regions.frame.cpu()
    attention, voted = generated.attention[:, :, rank].float().cpu(), generated.voted[:, :, rank].cpu()
    words, logs = generated.words[:, rank].cpu(), generated.log_probs[:, rank].cpu()
    captions: list[GroundedCaption] = []
    for image in range(len(regions)):
        said = vocabulary.decode(words[image].tolist())
        text, spans = sentence_text(said)
        found: list[GroundedWord] = []
        for at, (start, end) in enumerate(spans):
            groundable = vocabulary.is_groundable[int(words[image, at])]
            where = Pointed((), (), 0.0)
            if groundable and bool(mask[image].any()):
                weights = attention[:, image, at] * prior[image]
                where = point(
                    weights, voted[:, image, at], boxes[image], mask[image], frame[image], pointing, branches=branches
                )
            found.append(GroundedWord(text[start:end], start, end, where.boxes, where.frames, where.score, groundable))
        width, height = (int(side) for side in regions.sizes[image].tolist())
        real = words[image] != 0
        score = float(logs[image][real].mean()) if bool(real.any()) else 0.0
        captions.append(GroundedCaption(regions.ids[image], (width, height), text, tuple(found), score))
    return captions


def priors(regions: RegionBatch, pointing: Pointing) -> Tensor:
    """What weights are multiplied by, (B, N)."""
    prior = torch.ones_like(regions.objectness, dtype=torch.float32)
    if pointing.objectness:
        prior = prior * regions.objectness.float().clamp(min=1e-6) ** pointing.objectness
    if pointing.regionness and regions.regionness is not None:
        prior = prior * regions.regionness.float().clamp(min=1e-6) ** pointing.regionness
    return prior
