"""Distillation (paper 2, eq. 15): the captioner's attention learns from any grounder's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from deixis.captioning.objectives.base import Context, Objective
from deixis.data.batch import Batch, WordKind
from deixis.distributed import masked_mean
from deixis.errors import BadRecipeError
from deixis.interfaces import Grounder

SMALLEST = 1e-8


@dataclass(frozen=True, slots=True)
class DistillationOptions:
    """Who teaches, which words, and how. Usual weight of the objective: .1."""

    teacher: str = ""
    """A grounder: a run folder or a name the training room knows."""
    cached: str = ""
    """Take the teacher's attention from ``batch.cached`` under this name; the teacher runs only where it is absent."""
    form: Literal["paper", "code"] = "paper"
    """``paper``: KL(student || teacher) as eq. 15; ``code``: KL(teacher || student) as the released code."""
    loss: Literal["kl", "nll"] = "kl"
    """``nll``: -log of the student's weight at the teacher's best region."""
    words: tuple[Literal["noun", "verb", "adjective", "other"], ...] = ("noun",)


class Distillation(Objective):
    """Divergence between the captioner's and the teacher's attention at the ground-truth caption's nouns.

    The teacher is frozen, sees the whole caption, and is not part of what is trained or saved. Branches and heads of
    the student are averaged first. The mean is over the words that count.
    """

    def __init__(
        self,
        options: DistillationOptions | None = None,
        load_grounder: Callable[[str], Grounder] | None = None,
        teacher: Grounder | None = None,
    ) -> None:
        """``teacher`` itself, or ``load_grounder`` that finds the one ``options.teacher`` names."""
        super().__init__()
        self.options = options or DistillationOptions()
        if teacher is None and self.options.teacher:
            if load_grounder is None:
                raise BadRecipeError(f"nothing here can load the teacher '{self.options.teacher}'")
            teacher = load_grounder(self.options.teacher)
        if teacher is None and not self.options.cached:
            raise BadRecipeError("the objective 'distillation' needs a 'teacher' or the name of a 'cached' one")
        self._teacher = (teacher,)  # in a tuple, so that a module is not registered as ours

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``distillation``."""
        first = context.first()
        student = first.mean_attention
        teacher = self.taught(context.batch).to(student)
        counted = first.mask & self.counted(context.batch)
        if self.options.loss == "nll":
            best = teacher.argmax(-1, keepdim=True)
            losses = -student.gather(-1, best).squeeze(-1).clamp(min=SMALLEST).log()
        elif self.options.form == "paper":
            losses = divergence(student, teacher)
        else:
            losses = divergence(teacher, student)
        return {"distillation": masked_mean(losses, counted)}

    def taught(self, batch: Batch) -> Tensor:
        """The teacher's attention, (C, T, N)."""
        cached = batch.cached.get(self.options.cached) if self.options.cached else None
        if cached is not None:
            return cached
        teacher = self._teacher[0]
        if teacher is None:
            raise BadRecipeError(f"no teacher attention is cached as '{self.options.cached}', and no teacher is given")
        with torch.no_grad():
            return teacher.attention(batch)

    def counted(self, batch: Batch) -> Tensor:
        """Words that take part, (C, T)."""
        kinds = [int(WordKind[name.upper()]) for name in self.options.words]
        return torch.isin(batch.tags, torch.tensor(kinds, device=batch.tags.device))


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """KL(p || q) over the last axis, (..., N) -> (...). Weights of 0 (padding, eliminated regions) are smoothed."""
    return (p * (p.clamp(min=SMALLEST).log() - q.clamp(min=SMALLEST).log())).sum(-1)
