"""Region classification with human boxes (GVD's L_cls): regions on an annotated box learn its object class."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.errors import BadRecipeError
from deixis.objectives.base import Context, Objective
from deixis.objectives.targets import word_targets
from deixis.processes import masked_mean


class RegionClassification(Objective):
    """Cross entropy of the encoder's classifiers W_c on every region that overlaps an annotated box by ``min_iou``.

    It needs ``encoder.similarity: learned``, whose classifiers these are, with as many classes as the data has.

    Zhou et al., *Grounded Video Description*, CVPR 2019 (its classification loss).

    >>> objective = RegionClassification()
    >>> losses = objective(Context(captioner, batch))
    >>> losses["region_classification"].backward()
    """

    needs = frozenset({"boxes", "classes"})

    def __init__(self, min_iou: float = 0.5) -> None:
        super().__init__()
        self.min_iou = min_iou

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``region_classification``; the share of regions classified rightly is watched."""
        targets = word_targets(context.batch, "region_classification")
        logits = class_logits(context, "region_classification")  # (B, N, C)
        phrase, region = (targets.positive(self.min_iou) & (targets.label >= 0).unsqueeze(1)).nonzero(as_tuple=True)
        chosen = logits[targets.image[phrase], region]  # (M, C)
        label = targets.label[phrase]
        losses = F.cross_entropy(chosen, label, reduction="none")
        every = torch.ones_like(label, dtype=torch.bool)
        hits = (chosen.detach().argmax(1) == label).float()
        return {
            "region_classification": masked_mean(losses, every),
            "_region_accuracy": masked_mean(hits, every),
        }


def class_logits(context: Context, objective: str) -> Tensor:
    """Return the encoder's class logits, (B, N, C)."""
    logits = context.encoded().class_logits
    if logits is None:
        raise BadRecipeError(f"the objective '{objective}' needs model.encoder.similarity: learned")
    return logits
