"""The network while it learns: proposals, classes, caption words, and what a dense teacher sees."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.geometry import iou
from deixis.regions.network.detector import Dense, LiteNetwork, LiteShape
from deixis.regions.network.proposals import cells_of
from deixis.regions.network.roi import roi_align
from deixis.regions.network.select import Ranking, select
from deixis.regions.network.trunks.dinov2 import PATCH, WIDTH, DinoV2
from deixis.regions.network.trunks.layers import pointwise
from deixis.regions.training.data import Photos
from deixis.regions.training.targets import proposal_losses, targets_of
from deixis.regions.training.words import (
    WHOLE_REGION,
    WHOLE_THING,
    contrast,
    log_priors,
    pool_over_regions,
    thing_gate,
    word_goal,
)

OWN, THINGS, REGIONS = 20, 12, 12  # boxes of each photo that are described: its own proposals, things, regions
SAME, OTHER = 0.5, 0.3  # overlap with a thing from which on a box is that thing, and below which it is not
REGION_OF_THING = 0.5  # how coherent a region a thing is, where the segmenter has not looked
MAP_STRIDE = 16


@dataclass(frozen=True, slots=True)
class Described:
    """The boxes of a batch that are described, with the priors that decide which words they may answer for."""

    boxes: Tensor  # (N, 4) in input pixels
    image_of: Tensor  # (N,)
    things: Tensor  # (N,)
    regions: Tensor  # (N,)
    classes: Tensor  # (N, 80) scores
    known: Tensor  # (N,) is the class certain, one way or the other?


class Learner(nn.Module):
    """The network and what only training needs: heads that read words off the whole photo and predict the teacher."""

    gate: Tensor  # (W,)

    def __init__(self, shape: LiteShape, words: list[str], ranking: Ranking, half: bool = False) -> None:
        super().__init__()
        self.in_half = half
        self.network = LiteNetwork(shape)
        self.ranking = ranking
        self.whole_words = nn.Linear(shape.feature, shape.words)
        self.teach_map = nn.Conv2d(shape.describe, WIDTH, 1)
        self.teach_region = nn.Linear(shape.feature, WIDTH)
        self.teach_whole = nn.Linear(shape.feature, WIDTH)
        nn.init.constant_(self.whole_words.bias, -4.0)
        self.register_buffer("gate", thing_gate(words), persistent=False)

    def forward(self, photos: Photos, teacher: DinoV2 | None) -> dict[str, Tensor]:
        """All named losses of a batch."""
        width, height = photos.shape
        cells = cells_of(height, width)
        with quicker(self.in_half):
            dense = self.network(photos.pixels)
        targets = targets_of(cells, photos.shape, photos.things, photos.regions)
        losses = proposal_losses(dense.scores, dense.boxes, targets, cells)
        described = self.described(photos, dense)
        head = self.network.regions
        with quicker(self.in_half):
            feature = head.describe(head.pool(dense, described.boxes, described.image_of))
            classes, words = head.classes(feature).float(), head.words(feature).float()
            everything = self.network.describe_whole(dense)
            whole = self.whole_words(everything).float()
        losses |= self._naming_losses(photos, described, classes, words, whole)
        if teacher is not None:
            losses |= self._teaching_losses(photos, described, dense, feature, everything, teacher)
        return losses

    @torch.no_grad()
    def described(self, photos: Photos, dense: Dense) -> Described:
        """Choose boxes: the network's own best proposals and the whole photo, things, and the segmenter's regions."""
        width, height = photos.shape
        pixels = torch.tensor([width, height, width, height], dtype=torch.float32)
        parts: list[list[Tensor]] = []
        for row, (thing, classes, region) in enumerate(zip(photos.things, photos.classes, photos.regions, strict=True)):
            kept = select(dense.scores[row], dense.boxes[row], photos.shape, OWN, self.ranking)
            some, more = thing[:THINGS], region[:REGIONS] if region is not None else thing[:0]
            boxes = torch.cat([some[:, :4] * pixels, more[:, :4] * pixels, kept.boxes])
            is_thing = torch.cat([some[:, 4], torch.zeros(len(more)), kept.objectness])
            is_region = torch.cat([some[:, 4] * REGION_OF_THING, more[:, 4].clamp(max=1), kept.regionness])
            is_thing[-1], is_region[-1] = WHOLE_THING, WHOLE_REGION
            target, known = classes_of(boxes, thing[:, :4] * pixels, thing[:, 4], classes)
            parts.append([boxes, torch.full((len(boxes),), row), is_thing, is_region, target, known])
        return Described(*(torch.cat(column) for column in zip(*parts, strict=True)))

    def _naming_losses(
        self, photos: Photos, described: Described, classes: Tensor, words: Tensor, whole: Tensor
    ) -> dict[str, Tensor]:
        batch = len(photos.words)
        wrong = F.binary_cross_entropy_with_logits(classes, described.classes.sqrt(), reduction="none").sum(1)
        losses = {"classes": (wrong * described.known).sum() / (10 * batch)}
        pooled = []
        for row in range(batch):
            mine = described.image_of == row
            priors = log_priors(described.things[mine], described.regions[mine], self.gate)
            pooled.append(pool_over_regions(words[mine][None], priors[None])[0])
        captioned = photos.captioned
        said, goal = torch.stack(pooled)[captioned], word_goal(photos.words)[captioned]
        count = max(1, len(said))
        losses["words"] = F.binary_cross_entropy_with_logits(said, goal, reduction="sum") / count
        losses["contrast"] = contrast(said, goal > 0) if len(said) > 1 else said.sum() * 0
        losses["whole"] = F.binary_cross_entropy_with_logits(whole[captioned], goal, reduction="sum") / count
        return losses

    def _teaching_losses(
        self, photos: Photos, described: Described, dense: Dense, feature: Tensor, everything: Tensor, teacher: DinoV2
    ) -> dict[str, Tensor]:
        """How far the map, the region features and the whole photo's are from the teacher's, as 1 - cosine."""
        whole, tokens = look(teacher, photos.pixels, self.in_half)
        wanted = roi_align(tokens, described.boxes, described.image_of, 1 / MAP_STRIDE, 1, 4).flatten(1)
        with quicker(self.in_half):
            said = pointwise(self.teach_map, dense.describing)
            regions, photo = self.teach_region(feature), self.teach_whole(everything)
        return {
            "teach_map": (1 - F.cosine_similarity(said.float(), tokens, dim=1)).mean(),
            "teach_region": (1 - F.cosine_similarity(regions.float(), wanted, dim=1)).mean(),
            "teach_whole": (1 - F.cosine_similarity(photo.float(), whole, dim=1)).mean(),
        }


def quicker(half: bool) -> torch.autocast:
    """Compute in bfloat16, where the recipe asks for it: half the time on processors that have it, twice on others."""
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=half)


@torch.no_grad()
def look(teacher: DinoV2, pixels: Tensor, half: bool) -> tuple[Tensor, Tensor]:
    """The teacher's token of each photo (B, 384) and its map on our grid of stride 16, (B, 384, H/16, W/16)."""
    size = [side // MAP_STRIDE * PATCH for side in pixels.shape[-2:]]
    with quicker(half):
        whole, tokens = teacher(F.interpolate(pixels, size=size, mode="bilinear", antialias=True))
    return whole.float(), tokens.float()


def classes_of(boxes: Tensor, things: Tensor, scores: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """Class scores (N, 80) of boxes (N, 4) by the thing they coincide with, and whether that is certain (N,)."""
    target = torch.zeros(len(boxes), 80)
    if not len(things):
        return target, torch.ones(len(boxes))
    best, which = iou(boxes, things).max(1)
    same = best >= SAME
    target[same, classes[which[same]]] = scores[which[same]].clamp(0, 1)
    return target, (same | (best < OTHER)).float()
