"""What one pass of ReIR leaves behind for its losses and answers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from torch import Tensor

from deixis.objectives.base import Context


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """P phrases matched with M proposals each: all of their images at the coarse level, K at the fine one."""

    mask: Tensor  # (P, M)
    boxes: Tensor  # (P, M, 4) before this level's offsets
    scores: Tensor  # (P, M) s
    weights: Tensor  # (P, M) alpha
    seen: Tensor  # (P, D) z, the proposals weighted by alpha
    offsets: Tensor | None = None  # (P, M, 4) delta

    @classmethod
    def recall(cls, shared: dict[str, Tensor], name: str) -> Self:
        """Read a level back from what objectives share."""
        return cls(**{item.name: shared[key] for item in fields(cls) if (key := f"{name}.{item.name}") in shared})

    def keep(self, shared: dict[str, Tensor], name: str) -> None:
        """Write the level into what objectives share."""
        parts = {item.name: getattr(self, item.name) for item in fields(self)}
        shared.update({f"{name}.{part}": value for part, value in parts.items() if value is not None})


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


def reir_pass(context: Context) -> ReirPass:
    """Return the pass over the batch of this step, computed once for all objectives."""
    from deixis.grounding.reir.model import Reir  # the model returns a pass, so it knows this file

    shared = context.shared
    if "reir.image" in shared:
        refined = None
        if "reir.chosen" in shared:
            refined = Refined(Level.recall(shared, "reir.fine"), shared["reir.moved"], shared["reir.chosen"])
        image, phrase, sentence = (shared[f"reir.{name}"] for name in ("image", "phrase", "sentence"))
        return ReirPass(image, phrase, sentence, Level.recall(shared, "reir.coarse"), refined)
    if not isinstance(context.model, Reir):
        raise TypeError(f"this objective trains ReIR, not a {type(context.model).__name__}")
    done: ReirPass = context.model(context.batch, context.step)
    shared |= {"reir.image": done.image, "reir.phrase": done.phrase, "reir.sentence": done.sentence}
    done.coarse.keep(shared, "reir.coarse")
    if done.refined is not None:
        done.refined.level.keep(shared, "reir.fine")
        shared["reir.moved"], shared["reir.chosen"] = done.refined.moved, done.refined.chosen
    return done
