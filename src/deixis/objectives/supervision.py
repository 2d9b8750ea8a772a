"""Attention supervision with human boxes: the bound that weak supervision is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from deixis.objectives.base import Context, Objective
from deixis.objectives.targets import word_targets
from deixis.processes import masked_mean

AttentionLoss = Literal["nll", "pairs", "marginal", "kl"]
SMALLEST = 1e-8  # keeps logarithms of eliminated regions finite


@dataclass(frozen=True, slots=True)
class SupervisionOptions:
    """Which regions are right, and what is asked of the attention."""

    regions: Literal["all", "best"] = "all"
    """Every region with IoU above ``min_iou``, or the best one only."""
    loss: AttentionLoss = "nll"
    """``nll``: sum over right regions of -log weight (POS-SCAN eq. 16); ``pairs``: the mean of -log weight over all
    pairs of a word and a right region (GVD); ``marginal``: -log of the right regions' summed weight; ``kl``: KL from
    the uniform distribution over them to the attention."""
    frames: Literal["annotated", "all"] = "annotated"
    """In clips, over which frames the attention is a distribution: those with a box of the word (GVD), or all, which
    pushes it out of frames that nobody looked at."""
    min_iou: float = 0.5


class Supervision(Objective):
    """Pull the attention at annotated words to regions that overlap the human box (GVD; POS-SCAN eq. 16).

    The mean is over annotated words with at least one right region, but for ``loss: pairs``. Branches and heads are
    averaged first.

    Zhou et al., *Grounded Video Description*, CVPR 2019 (its attention loss); Zhou et al., *More Grounded
    Image Captioning by Distilling Image-Text Matching Model*, CVPR 2020, equation 16. Needs ``data.supervision``.

    >>> objective = Supervision()
    >>> losses = objective(Context(captioner, batch))
    >>> losses["supervision"].backward()
    """

    needs = frozenset({"boxes"})

    def __init__(self, options: SupervisionOptions | None = None) -> None:
        super().__init__()
        self.options = options or SupervisionOptions()

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``supervision``."""
        options = self.options
        targets = word_targets(context.batch, "supervision")
        right = targets.positive(options.min_iou) if options.regions == "all" else targets.best(options.min_iou)
        right = right & context.encoded().mask[targets.image]  # nobody can look at a region that is masked
        attention = context.first().mean_attention[targets.caption, targets.position]  # (P, N)
        if options.frames == "annotated":
            attention = attention * targets.annotated
            attention = attention / attention.sum(1, keepdim=True).clamp(min=SMALLEST)
        return {"supervision": supervised_loss(attention, right, right.any(1), options.loss)}


def supervised_loss(attention: Tensor, right: Tensor, counted: Tensor, loss: AttentionLoss) -> Tensor:
    """Return the loss of all words that count, (P, N), (P, N), (P,) -> ()."""
    if loss == "pairs":
        pairs = right & counted.unsqueeze(1)
        return masked_mean(-attention.clamp(min=SMALLEST).log(), pairs)
    return masked_mean(attention_loss(attention, right, loss), counted)


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
