"""The grounding loss with human boxes (GVD's L_grd): an object class should pick out its regions."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from deixis.captioning.model.additive import masked_softmax
from deixis.objectives.base import Context, Objective
from deixis.objectives.region_classification import class_logits
from deixis.objectives.supervision import supervised_loss
from deixis.objectives.targets import word_targets


class Grounding(Objective):
    """Softmax over the regions of the classifier score of the annotated word's class; -log at the right regions.

    In clips the softmax is over the frames that carry a box of the word. ``loss``: the mean over pairs of a word and a
    right region, as GVD, or over words of the sum over their right regions (``nll``).

    Zhou et al., *Grounded Video Description*, CVPR 2019 (its grounding loss). Use together with
    ``region_classification``.

    >>> objective = Grounding()
    >>> losses = objective(Context(captioner, batch))
    >>> losses["grounding"].backward()
    """

    needs = frozenset({"boxes", "classes"})

    def __init__(self, min_iou: float = 0.5, loss: Literal["pairs", "nll"] = "pairs") -> None:
        super().__init__()
        self.min_iou = min_iou
        self.loss: Literal["pairs", "nll"] = loss

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``grounding``."""
        targets = word_targets(context.batch, "grounding")
        logits = class_logits(context, "grounding")[targets.image]  # (P, N, C)
        own = targets.label.clamp(min=0).view(-1, 1, 1).expand(-1, logits.shape[1], 1)
        mask = context.encoded().mask[targets.image] & targets.annotated
        attention = masked_softmax(logits.gather(2, own).squeeze(2), mask)  # (P, N)
        right = targets.positive(self.min_iou) & mask
        counted = right.any(1) & (targets.label >= 0)
        return {"grounding": supervised_loss(attention, right, counted, self.loss)}
