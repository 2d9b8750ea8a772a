"""Relation classification: what two related phrases see must tell how they are related.

ReIR (Liu et al., CVPR 2021, section 3.3, equations 16 and 17).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.data.batch import RelationBatch
from deixis.grounding.reir.model import Reir
from deixis.objectives.balance import Reduction, reduced
from deixis.objectives.base import Context, Objective
from deixis.objectives.reir_pass import reir_pass
from deixis.processes import masked_mean


@dataclass(frozen=True, slots=True)
class RelationOptions:
    """``paper``: cross entropy; ``code``: one yes-or-no question per class, rare classes weighted up to 10 times."""

    form: Literal["paper", "code"] = "paper"
    hidden: int = 512
    reduction: Reduction = "sum"
    """How the relations of a caption are added up: equation 17 sums them."""


class RelationClassification(Objective):
    """Predicts the predicate of each parsed relation from what its subject and its object see at the last level.

    ``data.relations`` gives the predicates; class 0, "no relation", is neither predicted nor trained on.

    Liu et al., *Relation-aware Instance Refinement for Weakly Supervised Visual Grounding*, CVPR 2021, section 3.3,
    equations 16 and 17. Use together with ``reconstruction``.

    >>> objective = RelationClassification(RelationOptions(), grounder, data)
    >>> losses = objective(Context(grounder, batch))
    >>> losses["relations"].backward()
    """

    trains = Reir
    needs = frozenset({"phrases"})

    weights: Tensor

    def __init__(self, options: RelationOptions, model: Reir, data: Any) -> None:
        super().__init__()
        self.options = options
        width, classes = model.config.width, len(data.relations) - 1
        self.predict = nn.Sequential(
            nn.Linear(2 * width, options.hidden), nn.ReLU(), nn.Linear(options.hidden, max(classes, 1))
        )
        self.classes = classes
        counts = torch.tensor([count for _, count in data.relations.counts], dtype=torch.float32)
        self.register_buffer("weights", class_weights(counts), persistent=False)

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``relations``, and the share of predicates guessed right."""
        seen, relations = reir_pass(context).levels[-1].seen, context.batch.relations
        if relations is None or not self.classes:
            return {}
        assert context.batch.phrases is not None
        caption, captions = context.batch.phrases.caption, len(context.batch)
        kept = relations.predicate > 0
        relations = RelationBatch(relations.subject[kept], relations.predicate[kept], relations.object[kept])
        logits = self.logits(seen, relations.subject, relations.object)  # (R, C_r)
        everything = torch.ones_like(relations.predicate, dtype=torch.bool)
        right = masked_mean((logits.argmax(1) == relations.predicate - 1).float(), everything)
        if self.options.form == "paper":
            losses = F.cross_entropy(logits, relations.predicate - 1, reduction="none")
            loss = reduced(losses, caption[relations.subject], captions, self.options.reduction)
            return {"relations": loss, "_relations_right": right}
        subject, thing, targets = self.questions(relations, len(seen))
        losses = F.binary_cross_entropy_with_logits(
            self.logits(seen, subject, thing), targets, weight=self.weights.expand_as(targets), reduction="none"
        )
        loss = reduced(losses.mean(1), caption[subject], captions, self.options.reduction)
        return {"relations": loss, "_relations_right": right}

    def logits(self, seen: Tensor, subject: Tensor, thing: Tensor) -> Tensor:
        """Return the scores of all predicates for pairs of phrases (equation 16), (R, C_r)."""
        return self.predict(torch.cat([seen[subject], seen[thing]], -1))  # type: ignore[no-any-return]

    def questions(self, relations: RelationBatch, phrases: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return each related pair once, and all its predicates as ones, (Q,), (Q,), (Q, C_r)."""
        pairs, row = torch.unique(relations.subject * phrases + relations.object, return_inverse=True)
        targets = torch.zeros(len(pairs), self.classes, device=pairs.device)
        targets[row, relations.predicate - 1] = 1.0
        return pairs // max(phrases, 1), pairs % max(phrases, 1), targets


def class_weights(counts: Tensor, low: float = 1.0, high: float = 10.0) -> Tensor:
    """Return 1 / sqrt(count) of each class, stretched to the range from ``low`` to ``high``, (C_r,)."""
    if not len(counts):
        return counts
    rare = counts.clamp(min=1).rsqrt()
    span = rare.max() - rare.min()
    if span <= 0:
        return torch.full_like(rare, low)
    return low + (high - low) * (rare - rare.min()) / span
