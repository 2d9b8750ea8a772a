"""Intervals and significance by resampling photos (or clips) with replacement, vectorised and seeded.

Phrases of one photo stand or fall together, so whole photos are drawn, never single phrases. A metric takes part by
being a *sample*: something that can be estimated again under other weights of the photos.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deixis.errors import BadFileError

Floats = NDArray[np.float64]

REPLICATES = 1000
MACRO_PARTS = ("precision", "recall", "f1")
_ROWS_AT_ONCE = 100  # replicates estimated together: bounds the memory, not the result


class Sample(Protocol):
    """A metric that can be estimated again when each of its G groups counts ``weights[b, g]`` times."""

    @property
    def groups(self) -> int:
        """How many groups (photos or clips) there are."""
        ...

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value that any weights can give."""
        ...

    def estimate(self, weights: Floats) -> Floats:
        """Return the metric under each row of weights, (B, G) -> (B,)."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return what ``sample_from_json`` reads back."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MeanSample:
    """A mean over entries (phrases, sentences): per group the sum of their values and how many there are."""

    total: Floats  # (G,)
    count: Floats  # (G,)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.total)

    @property
    def bounds(self) -> tuple[float, float]:
        """A weighted mean lies between the smallest and the largest mean of a group; 0 where nothing was counted."""
        means = self.total[self.count > 0] / self.count[self.count > 0]
        return (float(means.min()), float(means.max())) if len(means) else (0.0, 0.0)

    def estimate(self, weights: Floats) -> Floats:
        """Return the weighted mean for each row of weights; 0 where nothing was counted."""
        return _ratio(weights @ self.total, weights @ self.count)

    def to_json(self) -> dict[str, Any]:
        """Return sums and counts per group."""
        return {"kind": "mean", "total": self.total.tolist(), "count": self.count.tolist()}

    @classmethod
    def of(cls, values: Floats, group: NDArray[np.int64], groups: int) -> MeanSample:
        """Gather one value per entry into its group."""
        return cls(
            np.bincount(group, weights=values, minlength=groups).astype(np.float64),
            np.bincount(group, minlength=groups).astype(np.float64),
        )


@dataclass(frozen=True, slots=True, eq=False)
class MacroSample:
    """Precision, recall and F1 averaged over L object classes, kept per group so that groups can be drawn again.

    Each is the sum of the class means divided by the number of classes present in the references of submitted items;
    F1 is the harmonic mean of the two averages, not the average of the classes' F1 (GVD's rule).
    """

    precision_hits: Floats  # (G, L)
    precision_count: Floats  # (G, L)
    recall_hits: Floats  # (G, L)
    recall_count: Floats  # (G, L)
    present: Floats  # (G, L)
    part: str = "f1"
    """Which of ``precision``, ``recall`` and ``f1`` ``estimate`` returns."""

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.present)

    @property
    def bounds(self) -> tuple[float, float]:
        """All three are shares."""
        return 0.0, 1.0

    def estimate(self, weights: Floats) -> Floats:
        """Return the chosen part for each row of weights."""
        return self.estimate_all(weights)[MACRO_PARTS.index(self.part)]

    def estimate_all(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Return precision, recall and F1 for each row of weights, each (B,)."""
        classes = (weights @ self.present > 0).sum(1).astype(np.float64)  # (B,)
        precision = _ratio(_ratio(weights @ self.precision_hits, weights @ self.precision_count).sum(1), classes)
        recall = _ratio(_ratio(weights @ self.recall_hits, weights @ self.recall_count).sum(1), classes)
        return precision, recall, _ratio(2 * precision * recall, precision + recall)

    def to_json(self) -> dict[str, Any]:
        """Return the entries that are not zero, as [group, class, value]."""
        data: dict[str, Any] = {"kind": "macro", "part": self.part, "shape": list(self.present.shape)}
        for name in _MACRO_ARRAYS:
            array = getattr(self, name)
            rows, columns = np.nonzero(array)
            values = [int(value) for value in array[rows, columns]]  # all of them count something
            data[name] = [list(entry) for entry in zip(rows.tolist(), columns.tolist(), values, strict=True)]
        return data


_MACRO_ARRAYS = ("precision_hits", "precision_count", "recall_hits", "recall_count", "present")


def sample_from_json(data: Any, where: str) -> Sample:
    """Read a sample back; ``where`` names the place in the error."""
    try:
        if data["kind"] == "mean":
            return MeanSample(np.array(data["total"], dtype=np.float64), np.array(data["count"], dtype=np.float64))
        if data["kind"] == "macro":
            rows, columns = data["shape"]
            parts = {name: np.zeros((rows, columns)) for name in _MACRO_ARRAYS}
            for name, array in parts.items():
                for row, column, value in data[name]:
                    array[row, column] = value
            return MacroSample(**parts, part=data["part"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise BadFileError(f"{where} is not a sample that `deixis score` writes: {error!r}") from error
    raise BadFileError(f"{where} has kind {data['kind']!r}, expected 'mean' or 'macro'")


def draw_weights(groups: int, replicates: int = REPLICATES, seed: int = 0) -> Floats:
    """Return how often each group is drawn in each replicate, (B, G); every row sums to G."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(groups, np.full(groups, 1 / groups), size=replicates).astype(np.float64)


def estimate_replicates(sample: Sample, weights: Floats) -> Floats:
    """Return the metric under every row of weights, some rows at a time."""
    parts = [sample.estimate(weights[at : at + _ROWS_AT_ONCE]) for at in range(0, len(weights), _ROWS_AT_ONCE)]
    return np.concatenate(parts) if parts else np.empty(0)


def value_of(sample: Sample) -> float:
    """Return the metric itself: every group counts once."""
    return float(sample.estimate(np.ones((1, sample.groups)))[0])


def interval(sample: Sample, weights: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of the metric over the replicates."""
    return _within(sample, _centred(estimate_replicates(sample, weights), value_of(sample), level))


def _within(sample: Sample, ends: tuple[float, float]) -> tuple[float, float]:
    """Cut an interval where the metric cannot go: moving percentiles may push an end beyond 100 %."""
    least, greatest = sample.bounds
    return max(ends[0], least), min(ends[1], greatest)


def _centred(drawn: Floats, value: float, level: float) -> tuple[float, float]:
    """Return percentiles of the replicates, moved so that their mean is the value itself.

    An average over classes is biased under resampling: a class that one photo has is missing from a third of the
    replicates. Unmoved percentiles could leave out the very number they belong to. Plain means do not change.
    """
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]) - drawn.mean() + value
    return float(low), float(high)


def intervals(samples: Mapping[str, Sample], weights: Floats, level: float = 0.95) -> dict[str, tuple[float, float]]:
    """Return the interval of every metric; precision, recall and F1 over the same classes are estimated together."""
    found: dict[str, tuple[float, float]] = {}
    replicates: dict[int, dict[str, Floats]] = {}
    for name, sample in samples.items():
        if isinstance(sample, MacroSample):
            key = id(sample.precision_count)
            if key not in replicates:
                steps = range(0, len(weights), _ROWS_AT_ONCE)
                chunks = [sample.estimate_all(weights[at : at + _ROWS_AT_ONCE]) for at in steps]
                parts = (np.concatenate(part) for part in zip(*chunks, strict=True))
                replicates[key] = dict(zip(MACRO_PARTS, parts, strict=True))
            drawn = replicates[key][sample.part]
        else:
            drawn = estimate_replicates(sample, weights)
        found[name] = _within(sample, _centred(drawn, value_of(sample), level))
    return found


@dataclass(frozen=True, slots=True)
class Difference:
    """How run A differs from run B on the same groups."""

    value: float
    low: float
    high: float
    p: float
    """Two-sided share of replicates in which the sign turns, never quite 0.

    Of G groups it is never below 2^(1 - G): by chance alone all differences have one sign that often. Drawing four
    photos that agree again and again would call them certain.
    """


def paired_difference(
    a: Sequence[Sample], b: Sequence[Sample], *, replicates: int = REPLICATES, seed: int = 0, level: float = 0.95
) -> Difference:
    """Compare two runs, each one sample or one per seed (then their mean), drawing the same groups for all of them."""
    sizes = {sample.groups for sample in (*a, *b)}
    if len(sizes) != 1:
        raise ValueError(f"paired samples need the same groups, got {sorted(sizes)}")
    groups = sizes.pop()
    weights = draw_weights(groups, replicates, seed)
    drawn = np.mean([estimate_replicates(s, weights) for s in a], 0) - np.mean(
        [estimate_replicates(s, weights) for s in b], 0
    )
    value = float(np.mean([value_of(s) for s in a]) - np.mean([value_of(s) for s in b]))
    low, high = _centred(drawn, value, level)
    tied = np.isclose(drawn, 0.0, atol=1e-12)  # replicates without any photo that differs speak for neither run
    drawn = drawn - drawn.mean() + value
    tail = min(((drawn <= 0) | tied).sum(), ((drawn >= 0) | tied).sum())
    p = min(1.0, max(2 * (int(tail) + 1) / (replicates + 1), 2.0 ** (1 - groups)))
    return Difference(value, low, high, p)


def _ratio(top: Floats, bottom: Floats) -> Floats:
    return np.divide(top, bottom, out=np.zeros_like(top, dtype=np.float64), where=bottom > 0)
