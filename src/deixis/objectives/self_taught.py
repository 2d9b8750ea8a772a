"""Self-taught regression: confident proposals teach their neighbours (ReIR, section 3.3, equation 15)."""

from __future__ import annotations

import torch
from torch import Tensor

from deixis.grounding.reir.forward_pass import reir_pass
from deixis.grounding.reir.model import Reir
from deixis.grounding.reir.refinement import Neighbourhood, self_taught_losses, self_taught_targets
from deixis.objectives.base import Context, Objective
from deixis.processes import masked_mean


class SelfTaught(Objective):
    """Smooth-L1 toward each phrase's best proposal, at both levels; 0 until the model's boxes move.

    The paper sums; here it is the mean over a phrase's taught proposals and over phrases.
    """

    def __init__(self, options: Neighbourhood, model: Reir) -> None:
        super().__init__()
        if model.config.regression == "none":
            raise ValueError("the model has no offsets to teach: set model.regression to visual or phrase")
        self.near = options

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``self_taught``, and how many proposals a phrase teaches at the coarse level."""
        done = reir_pass(context)
        everything = torch.ones(len(done.image), dtype=torch.bool, device=done.image.device)
        losses = done.phrase.new_zeros(len(done.image))  # (P,)
        if bool(context.model.moves):
            for level in done.levels:
                losses = losses + self_taught_losses(level, self.near)
        _, taught = self_taught_targets(done.coarse, self.near)
        return {
            "self_taught": masked_mean(losses, everything),
            "_taught": masked_mean(taught.sum(1).float(), everything),
        }
