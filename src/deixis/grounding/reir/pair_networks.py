"""ReIR's matching networks: a score and offsets for every phrase with every proposal, at the coarse and fine level.

Liu et al., CVPR 2021, equations 2, 4, 9 and 10. The first layer of a network over [phrase; proposal] is a sum of
a layer over each, so phrases and proposals go through it once and not once per pair.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.grounding.reir.features import Form

Regression = Literal["none", "visual", "phrase"]
"""Offsets from nothing, from the proposal alone (table 2, "w/o x_q"), or from phrase and proposal."""


class PairNetwork(nn.Module):
    """Two fully connected layers over [x_q; x_o], (P, D), (P, N, D) -> (P, N, outputs).

    ``phrase=False`` leaves the phrase out; ``hidden=0`` is one linear layer, as the released program has for scores. In
    that form a phrase shifts all its proposals alike, so only the label prior lets phrases order them differently.
    """

    def __init__(self, width: int, hidden: int, outputs: int, *, phrase: bool = True) -> None:
        super().__init__()
        self.of_object = nn.Linear(width, hidden or outputs)
        self.of_phrase = nn.Linear(width, hidden or outputs, bias=False) if phrase else None
        self.out = nn.Linear(hidden, outputs) if hidden else None

    def forward(self, phrase: Tensor, objects: Tensor) -> Tensor:
        """Return the outputs for phrases with proposals of their own, (P, D), (P, N, D) -> (P, N, O)."""
        return self.joined(phrase, self.of_object(objects))

    def shared(self, phrase: Tensor, objects: Tensor, image: Tensor) -> Tensor:
        """Return the same for proposals shared by the phrases of an image, (P, D), (B, N, D), (P,) -> (P, N, O)."""
        return self.joined(phrase, self.of_object(objects)[image])

    def joined(self, phrase: Tensor, hidden: Tensor) -> Tensor:
        """Add the phrase to the hidden values of its proposals and go on."""
        if self.of_phrase is not None:
            hidden = hidden + self.of_phrase(phrase).unsqueeze(1)
        if self.out is not None:
            hidden = self.out(F.relu(hidden))
        return hidden


class Matching(nn.Module):
    """F_cls and F_reg."""

    def __init__(self, form: Form, width: int, hidden: int, regression: Regression) -> None:
        super().__init__()
        self.score = PairNetwork(width, hidden if form == "paper" else 0, 1)
        self.offset: PairNetwork | None = None
        if regression != "none":
            self.offset = PairNetwork(width, hidden, 4, phrase=regression == "phrase")
            assert self.offset.out is not None
            nn.init.normal_(self.offset.out.weight, std=0.001)  # boxes start where they are
            nn.init.zeros_(self.offset.out.bias)


def named_alike(prior: Tensor, mask: Tensor, form: Form) -> Tensor:
    """Return which proposals a phrase may attend to, (P, N): all real ones, or, as released, those whose label has
    anything to do with it. A phrase that no label fits looks at all of them."""
    if form == "paper":
        return mask
    alike = mask & (prior > 0)
    return torch.where(alike.any(1, keepdim=True), alike, mask)


def attention(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over real proposals (equations 4 and 9), (P, N); a phrase without any proposal gets zeros."""
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), -1)
    return weights * mask
