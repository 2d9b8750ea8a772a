"""Visual consistency: what a phrase attends to must tell where it is.

KAC-Net (Chen et al., *Knowledge Aided Consistency for Weakly Supervised Phrase Grounding*, CVPR 2018): beside the words
of the phrase, the places of the proposals it chose are reconstructed, each weighted by how much it was chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.data.batch import Batch
from deixis.grounding.reir.forward_pass import Level
from deixis.grounding.reir.model import Reir
from deixis.objectives.base import Context, Objective
from deixis.objectives.reir_pass import reir_pass
from deixis.processes import masked_mean


@dataclass(frozen=True, slots=True)
class VisualConsistencyOptions:
    """Width of the hidden layer."""

    hidden: int = 128


class VisualConsistency(Objective):
    """Predicts centre and size from what a phrase sees; smooth-L1 to each proposal's, weighted by its attention.

    Centre and size are shares of the image. Attention spread over proposals in different places cannot be told well by
    one box, so it is drawn together.

    Chen et al., *Knowledge Aided Consistency for Weakly Supervised Phrase Grounding*, CVPR 2018. Use
    together with ``reconstruction``.

    >>> objective = VisualConsistency(VisualConsistencyOptions(), grounder)
    >>> losses = objective(Context(grounder, batch))
    >>> losses["visual_consistency"].backward()
    """

    trains = Reir
    needs = frozenset({"phrases"})

    def __init__(self, options: VisualConsistencyOptions, model: Reir) -> None:
        super().__init__()
        self.place = nn.Sequential(
            nn.Linear(model.config.width, options.hidden), nn.ReLU(), nn.Linear(options.hidden, 4)
        )

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``visual_consistency``, the mean over phrases."""
        done = reir_pass(context)
        losses = self.losses(done.coarse, places(done.coarse, done.image, context.batch))
        return {"visual_consistency": masked_mean(losses, losses >= 0)}

    def losses(self, level: Level, truth: Tensor) -> Tensor:
        """Return each phrase's loss, (P,)."""
        guessed = self.place(level.seen).unsqueeze(1).expand_as(truth)  # (P, N, 4)
        each = F.smooth_l1_loss(guessed, truth, reduction="none").sum(-1)  # (P, N)
        return (each * level.weights).sum(1)


def places(level: Level, image: Tensor, batch: Batch) -> Tensor:
    """Return x and y of the centre, width and height of each proposal as shares of its image, (P, N, 4)."""
    width, height = batch.regions.sizes[image].unsqueeze(1).unbind(-1)  # (P, 1) each
    x1, y1, x2, y2 = level.boxes.unbind(-1)
    return torch.stack([(x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height], -1)
