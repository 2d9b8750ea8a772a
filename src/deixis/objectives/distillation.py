"""Distillation (paper 2, eq. 15): the captioner's attention learns from any grounder's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from deixis.data.batch import Batch, WordKind
from deixis.errors import BadRecipeError
from deixis.home import cache_home
from deixis.interfaces import Grounder
from deixis.objectives.base import Context, Objective
from deixis.objectives.teacher_cache import TaughtAttention
from deixis.processes import masked_mean

SMALLEST = 1e-8
PREPARED = 32
"""Images at a time about which a teacher is asked ahead of training."""


@dataclass(frozen=True, slots=True)
class DistillationOptions:
    """Who teaches, which words, and how. Usual weight of the objective: .1."""

    teacher: str = ""
    """A grounder: a run folder or a name the training room knows."""
    keep: Literal["memory", "disk", "no"] = "memory"
    """Ask the teacher once per caption and keep what it says (see ``taught.py``) while the run lasts, or on disk under
    ``$DEIXIS_HOME/teachers`` for every later run too; ``no`` asks it at every step."""
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

    Zhou et al., *More Grounded Image Captioning by Distilling Image-Text Matching Model*, CVPR 2020, section 3.3,
    equation 15, second term. Use together with ``cross_entropy``.

    >>> objective = Distillation(teacher=grounder)
    >>> losses = objective(Context(captioner, batch))
    >>> losses["distillation"].backward()
    """

    needs = frozenset({"tags"})

    def __init__(
        self,
        options: DistillationOptions | None = None,
        load_grounder: Callable[[str], Grounder] | None = None,
        teacher: Grounder | None = None,
        data: Any = None,
        grounder_digest: Callable[[str], str] | None = None,
        captioner: nn.Module | None = None,
    ) -> None:
        """``teacher`` itself, or ``load_grounder`` that finds the one ``options.teacher`` names.

        To keep a teacher on disk, ``data.train`` gives the captions to ask it about and ``grounder_digest`` the digest
        of its weights; ``captioner`` says on which device.
        """
        super().__init__()
        self.options = options or DistillationOptions()
        if teacher is None and self.options.teacher:
            if load_grounder is None:
                raise BadRecipeError(f"nothing here can load the teacher '{self.options.teacher}'")
            teacher = load_grounder(self.options.teacher)
        if teacher is None and not self.options.cached:
            raise BadRecipeError("the objective 'distillation' needs a 'teacher' or the name of a 'cached' one")
        self._taught = (  # in a tuple, so that a module is not registered as ours
            None if teacher is None else TaughtAttention(teacher, self.counted, keep=self.options.keep != "no"),
        )
        if self.options.keep == "disk" and self._taught[0] is not None:
            if data is None or grounder_digest is None:
                raise BadRecipeError("a teacher kept on disk needs a name and training captions: set keep to memory")
            device = next((weight.device for weight in captioner.parameters()), None) if captioner else None
            self._prepare(self._taught[0], data.train, grounder_digest(self.options.teacher), device or "cpu")

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
        taught = self._taught[0]
        if taught is None:
            raise BadRecipeError(f"no teacher attention is cached as '{self.options.cached}', and no teacher is given")
        return taught(batch)

    def _prepare(self, taught: TaughtAttention, train: Any, digest: str, device: torch.device | str) -> None:
        """Read what this teacher says of these captions and regions from disk, or ask it about all of them now."""
        facts = [digest, train.source.fingerprint, str(train.source.max_regions), *self.options.words]
        mark = hashlib.sha256("\n".join(facts).encode())
        for example in train.examples:
            mark.update(repr((example.id, [(caption.words, caption.tags) for caption in example.captions])).encode())
        path = cache_home() / "teachers" / f"{mark.hexdigest()[:32]}.safetensors"
        if path.is_file():
            taught.load(path)
            return
        for first in range(0, len(train), PREPARED):
            taught(train.batch(range(first, min(first + PREPARED, len(train)))).to(device))
        taught.save(path)

    def counted(self, batch: Batch) -> Tensor:
        """Words that take part, (C, T)."""
        kinds = [int(WordKind[name.upper()]) for name in self.options.words]
        return torch.isin(batch.tags, torch.tensor(kinds, device=batch.tags.device))


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """KL(p || q) over the last axis, (..., N) -> (...). Weights of 0 (padding, eliminated regions) are smoothed."""
    return (p * (p.clamp(min=SMALLEST).log() - q.clamp(min=SMALLEST).log())).sum(-1)
