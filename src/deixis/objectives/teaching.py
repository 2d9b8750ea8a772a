"""Teaching: the answers of the lite grounder learn from evidence, coverage and prior, phrase by phrase."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from deixis.data.batch import PhraseBatch
from deixis.grounding.lite.model import LiteGrounder
from deixis.objectives.base import Context, Objective
from deixis.processes import masked_mean


@dataclass(frozen=True, slots=True)
class TeachingOptions:
    """How the teacher is listened to."""

    phrases: int = 640
    """Phrases in a step, drawn at random where the batch has more."""
    temperature: float = 0.5
    """Below 1 the teacher's favourite counts more than it says."""


class Teaching(Objective):
    """Cross entropy of the pupil against the teacher's distribution over regions. No gradient reaches the teacher.

    Ours, for ``lite``; learning from a teacher's distribution: Hinton et al., *Distilling the Knowledge in a Neural
    Network*, 2015. Use together with ``evidence``.

    >>> objective = Teaching()
    >>> losses = objective(Context(grounder, batch))
    >>> losses["teaching"].backward()
    """

    trains = LiteGrounder
    needs = frozenset({"phrases"})

    def __init__(self, options: TeachingOptions | None = None) -> None:
        super().__init__()
        self.options = options or TeachingOptions()

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``teaching``, the divergence, and how often pupil and teacher choose the same region."""
        model, batch = context.trained(LiteGrounder), context.batch
        if batch.phrases is None or not len(batch.phrases.head):
            return {}
        phrases = some_phrases(batch.phrases, self.options.phrases, context.generator)
        was_training = model.training
        model.eval()  # the teacher without dropout
        teacher = model.teacher(batch, phrases)
        model.train(was_training)
        target = torch.softmax(teacher / self.options.temperature, -1)  # (P, N)
        pupil = torch.log_softmax(model.pupil(batch, phrases), -1)
        losses = -(target * pupil.masked_fill(target == 0, 0.0)).sum(-1)
        entropy = -torch.special.xlogy(target, target).sum(-1)
        same = (teacher.argmax(-1) == pupil.argmax(-1)).float()
        everything = torch.ones_like(losses, dtype=torch.bool)
        return {
            "teaching": masked_mean(losses - entropy, everything),
            "_agreement": masked_mean(same, everything),
        }


def some_phrases(phrases: PhraseBatch, count: int, generator: torch.Generator | None = None) -> PhraseBatch:
    """Return at most ``count`` of the phrases, drawn at random."""
    if len(phrases.head) <= count:
        return phrases
    kept = torch.randperm(len(phrases.head), generator=generator)[:count].to(phrases.head.device)
    return PhraseBatch(phrases.caption[kept], phrases.first[kept], phrases.last[kept], phrases.head[kept])
