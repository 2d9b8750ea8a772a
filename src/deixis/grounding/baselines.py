"""Grounders that learn nothing: what every trained one has to beat.

They answer through the same interface and are scored by the same code, so that a gain over them is a gain in grounding
and not in the boxes they are given.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from deixis.atomic import utf8
from deixis.data.batch import Batch, RegionBatch
from deixis.errors import DeixisError
from deixis.geometry import area, centres
from deixis.grounding.base import AnswerOptions, WordGrounder
from deixis.grounding.label_prior import LabelPriorConfig, label_table, region_labels
from deixis.text.vocabulary import UNKNOWN, Vocabulary

BaselineName = Literal["whole", "centre", "random", "largest", "objectness", "label"]
BASELINES: tuple[BaselineName, ...] = ("whole", "centre", "random", "largest", "objectness", "label")


def build_baseline(
    name: BaselineName,
    vocabulary: Vocabulary,
    detector_classes: Sequence[str] = (),
    prior: LabelPriorConfig | None = None,
) -> Baseline:
    """Return a baseline by name; ``label`` needs the names of the regions' classes, and takes any word embedding."""
    if name == "label":
        return LabelMatch(vocabulary, detector_classes, prior or LabelPriorConfig("lemma"))
    kinds: dict[str, type[Baseline]] = {
        "whole": WholeImage,
        "centre": Centre,
        "random": RandomRegion,
        "largest": Largest,
        "objectness": TopObjectness,
    }
    if name not in kinds:
        raise DeixisError(f"there is no baseline '{name}': known are {', '.join(BASELINES)}")
    return kinds[name](vocabulary)


class Baseline(WordGrounder):
    """Scores regions without looking at the words, unless a subclass does."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary, AnswerOptions())

    def region_scores(self, regions: RegionBatch) -> Tensor:
        """Return how much the baseline likes each region, (B, N)."""
        raise TypeError(f"{type(self).__name__} does not say how it scores regions")

    def word_scores(self, batch: Batch) -> Tensor:
        """Return the same scores for every word, (C, T, N)."""
        scores = self.region_scores(batch.regions).masked_fill(~batch.regions.mask, -torch.inf)
        return scores[batch.image_of].unsqueeze(1).expand(-1, batch.words.shape[1], -1)

    def match(self, batch: Batch) -> Tensor:
        """Return zeros, (C,): a baseline does not know which caption fits."""
        return torch.zeros(len(batch), device=batch.words.device)


class WholeImage(Baseline):
    """The whole image, then the other regions as they come."""

    def region_scores(self, regions: RegionBatch) -> Tensor:
        """Prefer the last real region, which is the whole frame."""
        return 10.0 * whole_frame(regions) + in_order(regions)


class Centre(Baseline):
    """The middle half of the image, then the regions by how near their centre is to the image's."""

    def region_scores(self, regions: RegionBatch) -> Tensor:
        """Score by nearness; the whole frame, whose place the middle box takes, comes first."""
        boxes = regions.boxes_normalised
        away: Tensor = (centres(boxes) - 0.5).pow(2).sum(-1).sqrt()
        return 10.0 * whole_frame(regions) - away

    def ranked_boxes(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Put the middle box in the place of the whole frame."""
        logits, boxes = super().ranked_boxes(batch)
        assert batch.phrases is not None
        image = batch.image_of[batch.phrases.caption]
        quarter = batch.regions.sizes[image] / 4  # (P, 2)
        middle = torch.cat([quarter, 3 * quarter], -1).to(boxes.dtype).unsqueeze(1)  # (P, 1, 4)
        return logits, torch.where(whole_frame(batch.regions)[image].bool().unsqueeze(-1), middle, boxes)


class RandomRegion(Baseline):
    """A region drawn anew for each phrase, always the same for the same words of the same image."""

    def __init__(self, vocabulary: Vocabulary, seed: int = 0) -> None:
        super().__init__(vocabulary)
        self.seed = seed

    def word_scores(self, batch: Batch) -> Tensor:
        """Draw a score for every word and region from the image's id and the caption's words, (C, T, N)."""
        count = batch.regions.mask.shape[1]
        out = torch.full((*batch.words.shape, count), -torch.inf)
        for row, (words, image) in enumerate(zip(batch.words.tolist(), batch.image_of.tolist(), strict=True)):
            real = [word for word in words if word]
            regions = int(batch.regions.mask[image].sum())
            name = utf8(f"{self.seed} {batch.regions.ids[image]} {real}")
            draw = torch.rand(len(real), regions, generator=torch.Generator().manual_seed(zlib.crc32(name)))
            out[row, :, batch.regions.mask[image].cpu()] = 0.0
            out[row, : len(real), batch.regions.mask[image].cpu()] = draw
        return out.to(batch.words.device)


class Largest(Baseline):
    """The largest region that is not the whole frame."""

    def region_scores(self, regions: RegionBatch) -> Tensor:
        """Score by the share of the image."""
        return area(regions.boxes_normalised) - 10.0 * whole_frame(regions)


class TopObjectness(Baseline):
    """The region that is most surely one whole thing."""

    def region_scores(self, regions: RegionBatch) -> Tensor:
        """Score by objectness; the whole frame comes last."""
        return regions.objectness.float() - 10.0 * whole_frame(regions)


class LabelMatch(Baseline):
    """The region whose detector label is nearest to the word; between equals, the surest thing.

    A phrase that fits no label has the region with the highest objectness.
    """

    table: Tensor

    def __init__(self, vocabulary: Vocabulary, detector_classes: Sequence[str], prior: LabelPriorConfig) -> None:
        super().__init__(vocabulary)
        if not detector_classes:
            raise DeixisError("label matching needs the names of the detector's classes: these regions have none")
        self.prior = prior
        table = label_table(vocabulary.words, detector_classes, prior)
        table[: UNKNOWN + 1] = 0
        self.register_buffer("table", table)

    def word_scores(self, batch: Batch) -> Tensor:
        """Return how near each word is to each region's label, plus a little objectness, (C, T, N)."""
        regions = batch.regions
        shares = region_labels(regions.class_probs, self.table.shape[1], self.prior.labels)  # (B, N, C)
        near = torch.einsum("ctl,cnl->ctn", self.table[batch.words], shares[batch.image_of])
        sure = TopObjectness(self.vocabulary).region_scores(regions).clamp(min=-1.0)  # (B, N)
        scores = 10.0 * near + 0.1 * sure[batch.image_of].unsqueeze(1)
        return scores.masked_fill(~regions.mask[batch.image_of].unsqueeze(1), -torch.inf)


def whole_frame(regions: RegionBatch) -> Tensor:
    """Return 1 for the last real region of each image, which is the whole frame, else 0, (B, N)."""
    last = regions.mask.sum(1).clamp(min=1) - 1
    return torch.nn.functional.one_hot(last, regions.mask.shape[1]).float()


def in_order(regions: RegionBatch) -> Tensor:
    """Return scores that fall along the regions, which come best first, (B, N)."""
    count = regions.mask.shape[1]
    return -torch.arange(count, device=regions.mask.device).float().expand_as(regions.mask) / max(count, 1)
