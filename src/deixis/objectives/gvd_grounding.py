"""The grounding loss with human boxes (GVD's L_grd): an object class should pick out its regions."""

from __future__ import annotations

from torch import Tensor

from deixis.captioning.model.additive import masked_softmax
from deixis.objectives.base import Context, Objective
from deixis.objectives.region_classification import class_logits
from deixis.objectives.supervision import attention_loss
from deixis.objectives.targets import word_targets
from deixis.processes import masked_mean


class Grounding(Objective):
    """Softmax over the regions of the classifier score of the annotated word's class; -log at the right regions.

    Zhou et al., *Grounded Video Description*, CVPR 2019 (its grounding loss). Use together with
    ``region_classification``.

    >>> objective = Grounding()
    >>> losses = objective(Context(captioner, batch))
    >>> losses["grounding"].backward()
    """

    needs = frozenset({"boxes", "classes"})

    def __init__(self, min_iou: float = 0.5) -> None:
        super().__init__()
        self.min_iou = min_iou

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``grounding``."""
        targets = word_targets(context.batch, "grounding")
        logits = class_logits(context, "grounding")[targets.image]  # (P, N, C)
        own = targets.label.clamp(min=0).view(-1, 1, 1).expand(-1, logits.shape[1], 1)
        mask = context.encoded().mask[targets.image]
        attention = masked_softmax(logits.gather(2, own).squeeze(2), mask)  # (P, N)
        right = targets.positive(self.min_iou) & mask
        losses = attention_loss(attention, right, "nll")
        return {"grounding": masked_mean(losses, right.any(1) & (targets.label >= 0))}
