"""Learning rates over time: constant, step, milestones, plateau on a validation metric, cosine; each may warm up.

A schedule is a function of where the run is, but for the plateau, whose memory is a few numbers kept in the state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from deixis.training.recipe import ScheduleRecipe


class Schedule:
    """Learning rate of a stage with base rate ``lr`` that lasts ``total`` optimizer steps.

    >>> schedule = Schedule(ScheduleRecipe("step", every=3, factor=0.5), lr=0.1, total=100)
    >>> [schedule.rate(epoch=epoch, step=epoch) for epoch in (0, 2, 3, 6)]
    [0.1, 0.1, 0.05, 0.025]
    """

    def __init__(self, recipe: ScheduleRecipe, *, lr: float, total: int) -> None:
        self.recipe = recipe
        self.lr = lr
        self.total = total
        self.cuts = 0
        self.stale = 0
        self.best = -math.inf

    def rate(self, *, epoch: int, step: int) -> float:
        """Return the rate for optimizer step ``step`` (from 0) in ``epoch`` (from 0) of the stage."""
        recipe = self.recipe
        rate = self.lr
        if recipe.kind == "step":
            rate *= recipe.factor ** ((epoch + recipe.begun) // recipe.every)
        elif recipe.kind == "milestones":
            rate *= recipe.factor ** sum(step >= cut for cut in recipe.at)
        elif recipe.kind == "plateau":
            rate *= recipe.factor**self.cuts
        elif recipe.kind == "cosine":
            done = min(max(step - recipe.warmup, 0) / max(self.total - recipe.warmup, 1), 1.0)
            rate = recipe.floor + (rate - recipe.floor) * 0.5 * (1 + math.cos(math.pi * done))
        rate = max(rate, min(recipe.floor, self.lr))
        return rate * min((step + 1) / recipe.warmup, 1.0) if recipe.warmup else rate

    def observe(self, metric: float) -> None:
        """Take note of a validation; ``patience`` of them in a row without a gain cut the rate."""
        if metric > self.best:
            self.best, self.stale = metric, 0
            return
        self.stale += 1
        if self.stale > self.recipe.patience:
            self.cuts, self.stale = self.cuts + 1, 0

    def state(self) -> dict[str, Any]:
        """Return what has to be kept to go on."""
        return {"cuts": self.cuts, "stale": self.stale, "best": None if math.isinf(self.best) else self.best}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a kept state."""
        self.cuts, self.stale = int(state["cuts"]), int(state["stale"])
        self.best = -math.inf if state["best"] is None else float(state["best"])
