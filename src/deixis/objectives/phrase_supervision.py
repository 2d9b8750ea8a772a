"""Human boxes for a grounder: what a person corrected. Only recipes that say ``data.supervision: true`` get here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from deixis.grounding.base import WordGrounder
from deixis.objectives.base import Context, Objective
from deixis.objectives.supervision import attention_loss
from deixis.objectives.targets import word_targets
from deixis.processes import masked_mean


@dataclass(frozen=True, slots=True)
class PhraseSupervisionOptions:
    """What is asked of the answer."""

    loss: Literal["nll", "marginal", "kl"] = "marginal"
    """As for captioners (``supervision.py``): ``marginal`` is -log of the summed share of the right regions."""
    min_iou: float = 0.5
    """Regions that overlap a human box by more are right."""


class PhraseSupervision(Objective):
    """Pull the answers to annotated phrases to the regions that overlap their human boxes, as GVD pulls attention.

    The mean is over phrases with at least one right region: what has no box, or no region near it, teaches nothing. The
    answer is the one people get, prior and teacher included, so only what is wrong in it is learned.

    After Zhou et al., *Grounded Video Description*, CVPR 2019 (its attention loss). Needs ``data.supervision``.

    >>> objective = PhraseSupervision()
    >>> losses = objective(Context(grounder, batch))
    >>> losses["phrase_supervision"].backward()
    """

    trains = WordGrounder
    needs = frozenset({"boxes"})

    def __init__(self, options: PhraseSupervisionOptions | None = None) -> None:
        super().__init__()
        self.options = options or PhraseSupervisionOptions()

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``phrase_supervision``, and how often the best region is a right one."""
        model = context.trained(WordGrounder)
        right = word_targets(context.batch, "phrase_supervision").positive(self.options.min_iou)  # (P, N)
        shares = torch.softmax(model.phrase_logits(context.batch), -1)
        known = right.any(1)
        hit = right.gather(1, shares.argmax(1, keepdim=True)).squeeze(1).float()
        losses = attention_loss(shares, right, self.options.loss)
        return {"phrase_supervision": masked_mean(losses, known), "_right": masked_mean(hit, known)}
