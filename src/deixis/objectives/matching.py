"""The matcher's loss: the right caption above all others, by a margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from deixis.grounding.scan import Scan
from deixis.objectives.base import Context, Objective
from deixis.objectives.ranking import Negatives, triplet_loss
from deixis.processes import gather_rows, processes


@dataclass(frozen=True, slots=True)
class MatchingOptions:
    """SCAN and POS-SCAN: margin .2, the hardest negative in the batch."""

    margin: float = 0.2
    negatives: Negatives = "hardest"
    reduction: Literal["sum", "mean"] = "mean"
    """Over the captions of a batch. Equation 7 is of one pair; SCAN and the released program sum, and what a gradient
    is clipped at depends on it."""


class Matching(Objective):
    """Triplet loss over the table of image-caption scores (POS-SCAN, equation 7), summed over both directions.

    Negatives come from the whole batch of all processes, so the loss does not depend on how a batch is divided.

    Lee et al., *Stacked Cross Attention for Image-Text Matching*, ECCV 2018; Zhou et al., *More Grounded
    Image Captioning by Distilling Image-Text Matching Model*, CVPR 2020, section 3.1, equation 7.

    >>> objective = Matching()
    >>> losses = objective(Context(grounder, batch))
    >>> losses["matching"].backward()
    """

    trains = Scan

    def __init__(self, options: MatchingOptions | None = None) -> None:
        super().__init__()
        self.options = options or MatchingOptions()

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``matching``, and the share of captions whose own image scores highest."""
        model, batch = context.trained(Scan), context.batch
        regions, region_mask = model.regions(batch.regions), batch.regions.mask
        words, image_of = model.words(batch), batch.image_of
        over, counted = model.normalised_over(batch), model.counted(batch)
        if processes() > 1:
            regions, region_mask = gather_rows(widened(regions)), gather_rows(widened(region_mask))
            words, over = gather_rows(widened(words)), gather_rows(widened(over))
            counted = gather_rows(widened(counted))
            images = gather_rows(torch.ones_like(image_of[:1]) * len(batch.regions))  # images of each process
            captions = gather_rows(torch.ones_like(image_of[:1]) * len(image_of))
            first = (images.cumsum(0) - images).repeat_interleave(captions)
            image_of = gather_rows(image_of) + first
        table = model.scores(regions, region_mask, words, over, counted)  # (B, C)
        loss = triplet_loss(table, image_of, margin=self.options.margin, negatives=self.options.negatives)
        right = (table.argmax(0) == image_of).float().mean()
        return {"matching": loss.sum() if self.options.reduction == "sum" else loss.mean(), "_matched": right}


def widened(rows: Tensor) -> Tensor:
    """Pad the second axis to the longest of all processes, so that rows of different batches can be gathered."""
    most = int(gather_rows(torch.tensor([rows.shape[1]], device=rows.device)).max())
    padded = rows.new_zeros(rows.shape[0], most, *rows.shape[2:])
    padded[:, : rows.shape[1]] = rows
    return padded
