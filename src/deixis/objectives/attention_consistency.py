"""Attention consistency: the explicit alternative that paper 1 compares its cycle with (section 4.4, table 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from deixis.errors import BadRecipeError
from deixis.objectives.base import Context, Objective
from deixis.objectives.distillation import divergence
from deixis.processes import masked_mean


@dataclass(frozen=True, slots=True)
class AttentionConsistencyOptions:
    """The paper says "KL divergence over the two attention weights" and no more."""

    direction: Literal["localizer||decoder", "decoder||localizer"] = "localizer||decoder"
    stop_localizer: bool = True
    """Whether the localizer is held fixed (no gradient), so that the decoder's attention moves towards it."""


class AttentionConsistency(Objective):
    """KL divergence between the decoder's attention and the localizer's, over all words.

    It stands after ``cyclical`` in a stage, whose localizer it reads.

    Ma et al., *Learning to Generate Grounded Visual Captions without Localization Supervision*, ECCV 2020, section 4.4,
    table 4. Use after ``cyclical``, or instead of its gradient.

    >>> context = Context(captioner, batch)
    >>> cyclical(context)  # leaves the localizer's weights in the context
    >>> AttentionConsistency()(context)["attention_consistency"].backward()
    """

    def __init__(self, options: AttentionConsistencyOptions | None = None) -> None:
        super().__init__()
        self.options = options or AttentionConsistencyOptions()

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``attention_consistency``."""
        localized = context.shared.get("localized")
        if localized is None:
            raise BadRecipeError("the objective 'attention_consistency' must follow 'cyclical' in its stage")
        if self.options.stop_localizer:
            localized = localized.detach()
        first = context.first()
        decoder = first.mean_attention
        p, q = (localized, decoder) if self.options.direction == "localizer||decoder" else (decoder, localized)
        return {"attention_consistency": masked_mean(divergence(p, q), first.mask)}
