"""Attention supervision with human boxes: the bound that weak supervision is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from deixis.grounding.base import WordGrounder
from deixis.interfaces import Model
from deixis.objectives.base import Context, Objective
from deixis.objectives.targets import WordTargets, word_targets
from deixis.processes import masked_mean

SMALLEST = 1e-8  # keeps logarithms of eliminated regions finite


@dataclass(frozen=True, slots=True)
class SupervisionOptions:
    """Which regions are right, and what is asked of the attention."""

    regions: Literal["all", "best"] = "all"
    """Every region with IoU above ``min_iou``, or the best one only."""
    loss: Literal["nll", "marginal", "kl"] = "nll"
    """``nll``: sum over right regions of -log weight (POS-SCAN eq. 16); ``marginal``: -log of their summed weight;
    ``kl``: KL from the uniform distribution over them to the attention."""
    min_iou: float = 0.5


class Supervision(Objective):
    """Pull the attention at annotated words to regions that overlap the human box (GVD; POS-SCAN eq. 16).

    The mean is over annotated words with at least one right region. Branches and heads are averaged first. Of a
    grounder it is the answer to each annotated phrase that is pulled: what `deixis train grounding/own:corrected` does.

    Zhou et al., *Grounded Video Description*, CVPR 2019 (its attention loss); Zhou et al., *More Grounded
    Image Captioning by Distilling Image-Text Matching Model*, CVPR 2020, equation 16. Needs ``data.supervision``.

    >>> objective = Supervision()
    >>> losses = objective(Context(captioner, batch))
    >>> losses["supervision"].backward()
    """

    trains = Model  # captioners and grounders alike
    needs = frozenset({"boxes"})

    def __init__(self, options: SupervisionOptions | None = None) -> None:
        super().__init__()
        self.options = options or SupervisionOptions()

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``supervision``."""
        options = self.options
        targets = word_targets(context.batch, "supervision")
        right = targets.positive(options.min_iou) if options.regions == "all" else targets.best(options.min_iou)
        attention = _weights(context, targets)
        return {"supervision": masked_mean(attention_loss(attention, right, options.loss), right.any(1))}


def _weights(context: Context, targets: WordTargets) -> Tensor:
    """Return how a model shares its attention among the regions, for each annotated phrase, (P, N)."""
    if isinstance(context.model, WordGrounder):
        return torch.softmax(context.model.phrase_logits(context.batch), -1)
    return context.first().mean_attention[targets.caption, targets.position]


def attention_loss(attention: Tensor, right: Tensor, loss: Literal["nll", "marginal", "kl"]) -> Tensor:
    """Return the loss of each word, (P, N), (P, N) -> (P,)."""
    gamma = right.to(attention.dtype)
    if loss == "marginal":
        return -(attention * gamma).sum(1).clamp(min=SMALLEST).log()
    logs = attention.clamp(min=SMALLEST).log()
    if loss == "nll":
        return -(gamma * logs).sum(1)
    share = gamma / gamma.sum(1, keepdim=True).clamp(min=1)
    return (share * (share.clamp(min=SMALLEST).log() - logs)).sum(1)
