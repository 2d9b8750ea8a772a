"""Self-taught regression: confident proposals teach their neighbours (ReIR, section 3.3, equation 15)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from deixis.grounding.reir.model import Reir
from deixis.grounding.reir.refinement import Neighbourhood, self_taught_losses, self_taught_targets
from deixis.objectives.balance import Reduction, reduced
from deixis.objectives.base import Context, Objective
from deixis.objectives.reir_pass import reir_pass
from deixis.processes import masked_mean


@dataclass(frozen=True, slots=True)
class SelfTaughtOptions(Neighbourhood):
    """Who is taught, and how the phrases of a caption are added up."""

    reduction: Reduction = "sum"


class SelfTaught(Objective):
    """Smooth-L1 toward each phrase's best proposal, at both levels; 0 until the model's boxes move.

    Of a phrase's taught proposals it is the mean, over a caption's phrases the sum of equation 15.

    Liu et al., *Relation-aware Instance Refinement for Weakly Supervised Visual Grounding*, CVPR 2021, section 3.3,
    equation 15. Use together with ``reconstruction``.

    >>> objective = SelfTaught(SelfTaughtOptions(), grounder)
    >>> losses = objective(Context(grounder, batch))
    >>> losses["self_taught"].backward()
    """

    trains = Reir
    needs = frozenset({"phrases"})

    def __init__(self, options: SelfTaughtOptions, model: Reir) -> None:
        super().__init__()
        if model.config.regression == "none":
            raise ValueError("the model has no offsets to teach: set model.regression to visual or phrase")
        self.options = options

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``self_taught``, and how many proposals a phrase teaches at the coarse level."""
        done = reir_pass(context)
        batch, near = context.batch, self.options
        assert batch.phrases is not None
        everything = torch.ones(len(done.image), dtype=torch.bool, device=done.image.device)
        losses = done.phrase.new_zeros(len(done.image))  # (P,)
        if bool(context.trained(Reir).moves):
            for level in done.levels:
                losses = losses + self_taught_losses(level, near)
        _, taught = self_taught_targets(done.coarse, near)
        return {
            "self_taught": reduced(losses, batch.phrases.caption, len(batch), self.options.reduction),
            "_taught": masked_mean(taught.sum(1).float(), everything),
        }
