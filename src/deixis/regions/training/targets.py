"""What the proposal head should say, from boxes of things and regions, and how far off it is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.geometry import iou_aligned
from deixis.regions.network.proposals import LYING, STANDING, THING, Cells, encode

SIDES_PER_STRIDE = 4.0  # a box of 4 strides sits in the middle of its level's range
REACH = 1.0  # cells within one stride of a box's centre answer for it


@dataclass(frozen=True, slots=True)
class Targets:
    """For each cell and candidate: the score it should have, its box, and whether the loss looks at it."""

    scores: Tensor  # (B, A, 3)
    boxes: Tensor  # (B, A, 3, 4) in input pixels
    judged: Tensor  # (B, A, 3) is the score known?
    boxed: Tensor  # (B, A, 3) weight of the box


def assign(boxes: Tensor, scores: Tensor, cells: Cells) -> Tensor:
    """How much each cell may claim each box, (A, R): nearest in place and size, best score first; 0 for not at all.

    A box belongs to the cells around its centre at the levels that suit its size.
    """
    sides = (boxes[:, 2:] - boxes[:, :2]).clamp(min=1e-3)  # (R, 2)
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    strides = cells.strides[:, None]  # (A, 1)
    away = ((cells.centres[:, None] - middle).abs() / strides[..., None]).amax(-1)  # (A, R)
    octaves = (torch.log2(sides.prod(1).sqrt()) - torch.log2(SIDES_PER_STRIDE * strides)).abs()
    smallest = (strides == strides.min()) & (sides.prod(1).sqrt() < SIDES_PER_STRIDE * strides)
    largest = (strides == strides.max()) & (sides.prod(1).sqrt() > SIDES_PER_STRIDE * strides)
    suits = (octaves <= 1.0) | smallest | largest  # the tiniest and the largest boxes have a level too
    inside = ((cells.centres[:, None] - middle).abs() * 2 <= sides.clamp(min=cells.strides.min())).all(-1)
    near = (away <= REACH) & suits & inside
    return torch.where(near, 2 + scores - 0.3 * away - 0.3 * octaves.clamp(max=2), torch.zeros(()))


def owners(claim: Tensor, allowed: Tensor) -> Tensor:
    """The box each cell answers for among those allowed (R,), (A,); -1 for none."""
    if claim.shape[1] == 0:
        return torch.full((len(claim),), -1, dtype=torch.long)
    best, which = torch.where(allowed, claim, torch.zeros(())).max(1)
    return torch.where(best > 0, which, torch.full_like(which, -1))


def targets_of(cells: Cells, shape: tuple[int, int], things: list[Tensor], regions: list[Tensor | None]) -> Targets:
    """Targets of a batch from boxes with scores (N, 5), shares of the photo; None says nothing about regions.

    A thing's score is the square root of the detector's, so that doubtful things, which recall lives on, weigh in. Of
    regions that lie and regions that stand, each cell answers for one.
    """
    batch, count = len(things), len(cells.strides)
    pixels = torch.tensor([shape[0], shape[1], shape[0], shape[1]], dtype=torch.float32)
    scores, boxed = torch.zeros(batch, count, 3), torch.zeros(batch, count, 3)
    boxes = torch.zeros(batch, count, 3, 4)
    boxes[..., 2:] = 1.0
    judged = torch.zeros(batch, count, 3, dtype=torch.bool)

    def put(row: int, kind: int, which: Tensor, corners: Tensor, score: Tensor, sure: Tensor) -> None:
        judged[row, :, kind] = True
        if not len(corners):
            return
        hit, which = which >= 0, which.clamp(min=0)
        scores[row, :, kind] = torch.where(hit, score[which], torch.zeros(()))
        boxed[row, :, kind] = torch.where(hit, sure[which], torch.zeros(()))
        boxes[row, :, kind] = torch.where(hit[:, None], corners[which], boxes[row, :, kind])

    for row, (thing, region) in enumerate(zip(things, regions, strict=True)):
        corners, score = thing[:, :4] * pixels, thing[:, 4].clamp(0, 1).sqrt()
        everything = torch.ones(len(thing), dtype=torch.bool)
        put(row, THING, owners(assign(corners, score, cells), everything), corners, score, score)
        if region is None:
            continue
        corners, score = region[:, :4] * pixels, region[:, 4].clamp(0, 1)
        claim = assign(corners, score, cells)
        lying = corners[:, 2] - corners[:, 0] >= corners[:, 3] - corners[:, 1]
        for kind, allowed in ((LYING, lying), (STANDING, ~lying)):
            put(row, kind, owners(claim, allowed), corners, score, torch.ones_like(score))
    return Targets(scores, boxes, judged, boxed)


def giou(a: Tensor, b: Tensor) -> Tensor:
    """Generalised IoU (Rezatofighi et al., CVPR 2019, algorithm 1) of boxes at the same place, (..., 4) -> (...)."""
    shared = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    areas = [(boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(-1) for boxes in (a, b)]
    union = areas[0] + areas[1] - shared
    hull = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    return shared / union.clamp(min=1e-6) - (hull - union) / hull.clamp(min=1e-6)


def proposal_losses(logits: Tensor, boxes: Tensor, targets: Targets, cells: Cells) -> dict[str, Tensor]:
    """Named losses of the head: scores by cross entropy with soft targets, boxes by GIoU and their offsets.

    The score to learn is the box's score times how well the predicted box fits (Li et al., Generalized Focal Loss,
    NeurIPS 2020, section 3.1), so that ranking by score ranks by fit.
    """
    losses: dict[str, Tensor] = {}
    fit = iou_aligned(boxes.detach(), targets.boxes).clamp(0, 1)
    wanted, said = encode(targets.boxes, cells), encode(boxes, cells)
    for name, kinds in (("thing", slice(THING, THING + 1)), ("region", slice(LYING, STANDING + 1))):
        goal = targets.scores[..., kinds] * fit[..., kinds]
        logit, judged, weight = logits[..., kinds], targets.judged[..., kinds], targets.boxed[..., kinds]
        wrong = F.binary_cross_entropy_with_logits(logit, goal, reduction="none")
        wrong = wrong * (torch.sigmoid(logit.detach()) - goal).abs().clamp(min=0.02)
        mass = weight.sum().clamp(min=1.0)
        losses[f"{name}_score"] = (wrong * judged).sum() / mass
        on = weight > 0
        off = 1 - giou(boxes[..., kinds, :][on], targets.boxes[..., kinds, :][on])
        losses[f"{name}_box"] = (off * weight[on]).sum() / mass
        slip = F.smooth_l1_loss(said[..., kinds, :][on], wanted[..., kinds, :][on], reduction="none", beta=0.5).sum(-1)
        losses[f"{name}_offset"] = (slip * weight[on]).sum() / mass
    return losses
