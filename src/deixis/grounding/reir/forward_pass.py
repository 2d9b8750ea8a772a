"""What one pass of ReIR leaves behind for its losses and answers."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """P phrases matched with M proposals each: all of their images at the coarse level, K at the fine one."""

    mask: Tensor  # (P, M)
    boxes: Tensor  # (P, M, 4) before this level's offsets
    scores: Tensor  # (P, M) s
    weights: Tensor  # (P, M) alpha
    seen: Tensor  # (P, D) z, the proposals weighted by alpha
    offsets: Tensor | None = None  # (P, M, 4) delta


@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """The fine level, and how its proposals came out of the coarse one."""

    level: Level
    moved: Tensor  # (P, N, 4) all proposals after the coarse offsets
    chosen: Tensor  # (P, K) rows of the N


@dataclass(frozen=True, slots=True, eq=False)
class ReirPass:
    """Both levels for the phrases of a batch."""

    image: Tensor  # (P,)
    phrase: Tensor  # (P, D) x_q
    sentence: Tensor  # (C, D) the mean of the states of each caption's words
    coarse: Level
    refined: Refined | None = None

    @property
    def levels(self) -> list[Level]:
        """The coarse and, where there is one, the fine level."""
        return [self.coarse] if self.refined is None else [self.coarse, self.refined.level]
