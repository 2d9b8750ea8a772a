"""Logistic curves (Platt, 1999): from scores to probabilities. In numpy alone, so that they are read without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deixis.errors import DeixisError

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Logistic:
    """A logistic curve over signals: sigmoid(weights · signals + bias)."""

    weights: tuple[float, ...]
    bias: float

    def __call__(self, signals: Numbers) -> Numbers:
        """Return probabilities, (P, S) -> (P,)."""
        level = signals @ np.asarray(self.weights) + self.bias
        probability: Numbers = 1.0 / (1.0 + np.exp(-np.clip(level, -60, 60)))
        return probability

    @classmethod
    def fit(cls, signals: Numbers, labels: Flags, ridge: float = 1e-3) -> Self:
        """Fit by Newton's method; ``ridge`` keeps weights finite where signals separate the labels."""
        if labels.all() or not labels.any():
            raise DeixisError("a calibration needs right and wrong answers to tell apart, and all of these are alike")
        mean, spread = signals.mean(0), signals.std(0).clip(1e-9)
        design = np.concatenate([(signals - mean) / spread, np.ones((len(signals), 1))], 1)  # (P, S + 1)
        penalty = ridge * len(signals) * np.eye(design.shape[1])
        penalty[-1, -1] = 0.0
        weights = np.zeros(design.shape[1])
        for _ in range(50):
            expected = 1.0 / (1.0 + np.exp(-np.clip(design @ weights, -30, 30)))
            slope = design.T @ (expected - labels) + penalty @ weights
            bend = (design * (expected * (1 - expected))[:, None]).T @ design + penalty
            step = np.linalg.solve(bend + 1e-9 * np.eye(len(bend)), slope)
            weights = weights - step
            if np.abs(step).max() < 1e-9:
                break
        scaled = weights[:-1] / spread
        return cls(tuple(scaled.tolist()), float(weights[-1] - scaled @ mean))


@dataclass(frozen=True, slots=True)
class Presence:
    """Probability = 1 / (1 + exp(-(slope * score + offset))); below the threshold a word is doubted."""

    slope: float
    offset: float
    threshold: float = 0.5

    def __call__(self, score: float) -> float:
        """Return the probability that a thing with this matching score is there."""
        return float(1 / (1 + np.exp(-np.clip(self.slope * score + self.offset, -50, 50))))

    def of_all(self, scores: Sequence[float | None]) -> list[float | None]:
        """Return the probability of each score; None stays None."""
        return [None if score is None else self(score) for score in scores]
