"""What the proposal head should say, from the teachers' boxes, and how far off it is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.geometry import iou_aligned
from deixis.regions.network.proposals import LYING, STANDING, THING, Cells, encode
from deixis.regions.training.teachers import YOLOX_GRIDS, YOLOX_SIDE, YOLOX_STRIDES

LOWEST_THING = 0.02  # below this score the teacher's box is noise
SIDES_PER_STRIDE = 4.0  # a region of 4 strides sits in the middle of its level's range
REACH = 1.0  # cells within one stride of a region's centre answer for it


@dataclass(frozen=True, slots=True)
class Targets:
    """For each cell and candidate: the score it should have, its box, and whether the loss looks at it."""

    scores: Tensor  # (B, A, 3)
    boxes: Tensor  # (B, A, 3, 4) in input pixels
    judged: Tensor  # (B, A, 3) is the score known?
    boxed: Tensor  # (B, A, 3) weight of the box


def teacher_cells_at(cells: Cells, shape: tuple[int, int], size: tuple[int, int], mirrored: bool) -> Tensor:
    """Index of YOLOX's cell that looks at the same spot at the same stride, (A,); -1 where it has none.

    The teacher sees a photo of `size` letter-boxed to 416, we see it at `shape` (both width, height), perhaps mirrored.
    """
    scale = YOLOX_SIDE / max(size)
    inside = [max(1, round(side * scale)) for side in size]
    at = cells.centres / cells.centres.new_tensor(shape)  # (A, 2) shares of the photo
    if mirrored:
        at = torch.stack([1 - at[:, 0], at[:, 1]], 1)
    at = (at.clamp(0, 1 - 1e-6) * at.new_tensor(inside)).long()
    index = torch.full((len(at),), -1, dtype=torch.long)
    first = 0
    for level, (stride, grid) in enumerate(zip(YOLOX_STRIDES, YOLOX_GRIDS, strict=True)):
        here = cells.levels == level
        index[here] = first + (at[here, 1] // stride) * grid + at[here, 0] // stride
        first += grid * grid
    return index


def mirror(boxes: Tensor) -> Tensor:
    """Mirror boxes given as shares of the image left to right."""
    return torch.stack([1 - boxes[..., 2], boxes[..., 1], 1 - boxes[..., 0], boxes[..., 3]], -1)


def assign_regions(boxes: Tensor, scores: Tensor, cells: Cells) -> Tensor:
    """Which region each cell answers for as its lying and standing candidate, (A, 2); -1 for none.

    A region belongs to the cells around its centre at the levels that suit its size; where several claim a
    candidate, the nearest in place and size with the best score gets it.
    """
    if len(boxes) == 0:
        return torch.full((len(cells.strides), 2), -1, dtype=torch.long)
    sides = (boxes[:, 2:] - boxes[:, :2]).clamp(min=1e-3)  # (R, 2)
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    strides = cells.strides[:, None]  # (A, 1)
    away = ((cells.centres[:, None] - middle).abs() / strides[..., None]).amax(-1)  # (A, R)
    octaves = (torch.log2(sides.prod(1).sqrt()) - torch.log2(SIDES_PER_STRIDE * strides)).abs()
    inside = ((cells.centres[:, None] - middle).abs() * 2 <= sides).all(-1)
    claim = torch.where((away <= REACH) & (octaves <= 1.0) & inside, 2 + scores - 0.3 * away - 0.3 * octaves, 0.0)
    lying = sides[:, 0] >= sides[:, 1]
    chosen = []
    for mask in (lying, ~lying):
        best, which = torch.where(mask, claim, torch.zeros_like(claim)).max(1)
        chosen.append(torch.where(best > 0, which, torch.full_like(which, -1)))
    return torch.stack(chosen, 1)


def targets_of(
    cells: Cells,
    shape: tuple[int, int],
    sizes: list[tuple[int, int]],
    mirrored: list[bool],
    things: Tensor,
    regions: list[Tensor | None],
) -> Targets:
    """Targets of a batch: `things` (B, 3549, 5) are YOLOX's cells, `regions` MobileSAM's boxes (R, 5) or None.

    Boxes come as shares of the photo, not mirrored. Things follow the teacher cell by cell; their score is the
    square root of the teacher's, so that doubtful things, which recall lives on, weigh in.
    """
    batch, count = len(sizes), len(cells.strides)
    pixels = torch.tensor([shape[0], shape[1], shape[0], shape[1]], dtype=torch.float32)
    scores = torch.zeros(batch, count, 3)
    boxes = torch.zeros(batch, count, 3, 4)
    boxes[..., 2:] = 1.0
    judged = torch.zeros(batch, count, 3, dtype=torch.bool)
    boxed = torch.zeros(batch, count, 3)
    for row in range(batch):
        index = teacher_cells_at(cells, shape, sizes[row], mirrored[row])
        known = index >= 0
        said = things[row, index.clamp(min=0)]  # (A, 5)
        score = torch.where(known, said[:, 4], torch.zeros(()))
        scores[row, :, THING] = score.clamp(0, 1).sqrt()
        boxes[row, :, THING] = (mirror(said[:, :4]) if mirrored[row] else said[:, :4]) * pixels
        judged[row, :, THING] = True
        boxed[row, :, THING] = torch.where(score > LOWEST_THING, score.clamp(0, 1).sqrt(), torch.zeros(()))
        found = regions[row]
        if found is None:
            continue
        corners = (mirror(found[:, :4]) if mirrored[row] else found[:, :4]) * pixels
        which = assign_regions(corners, found[:, 4], cells)  # (A, 2)
        judged[row, :, LYING:] = True
        if len(found):
            hit = which >= 0
            scores[row, :, LYING:] = torch.where(hit, found[which.clamp(min=0), 4].clamp(0, 1), torch.zeros(()))
            boxed[row, :, LYING:] = hit.float()
            boxes[row, :, LYING:] = corners[which.clamp(min=0)]
    return Targets(scores, boxes, judged, boxed)


def giou(a: Tensor, b: Tensor) -> Tensor:
    """Generalised IoU (Rezatofighi et al., CVPR 2019, algorithm 1) of boxes at the same place, (..., 4) -> (...)."""
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    areas = [(boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(-1) for boxes in (a, b)]
    union = areas[0] + areas[1] - shared
    hull = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    return shared / union.clamp(min=1e-6) - (hull - union) / hull.clamp(min=1e-6)


def proposal_losses(logits: Tensor, boxes: Tensor, targets: Targets, cells: Cells) -> dict[str, Tensor]:
    """Named losses of the head: scores by cross entropy with soft targets, boxes by GIoU and their offsets.

    A region's score target is the teacher's score times how well the predicted box fits (Li et al., Generalized Focal
    Loss, NeurIPS 2020, section 3.1), so that ranking by score ranks by fit.
    """
    losses: dict[str, Tensor] = {}
    fit = iou_aligned(boxes.detach(), targets.boxes).clamp(0, 1)
    wanted, said = encode(targets.boxes, cells), encode(boxes, cells)
    for name, kinds in (("thing", slice(THING, THING + 1)), ("region", slice(LYING, STANDING + 1))):
        goal = targets.scores[..., kinds]
        if name == "region":
            goal = goal * fit[..., kinds]
        logit, judged, weight = logits[..., kinds], targets.judged[..., kinds], targets.boxed[..., kinds]
        wrong = F.binary_cross_entropy_with_logits(logit, goal, reduction="none")
        if name == "region":
            wrong = wrong * (torch.sigmoid(logit.detach()) - goal).abs().clamp(min=0.02)
        mass = weight.sum().clamp(min=1.0)
        losses[f"{name}_score"] = (wrong * judged).sum() / mass
        on = weight > 0
        off = 1 - giou(boxes[..., kinds, :][on], targets.boxes[..., kinds, :][on])
        losses[f"{name}_box"] = (off * weight[on]).sum() / mass
        slip = F.smooth_l1_loss(said[..., kinds, :][on], wanted[..., kinds, :][on], reduction="none", beta=0.5).sum(-1)
        losses[f"{name}_offset"] = (slip * weight[on]).sum() / mass
    return losses
