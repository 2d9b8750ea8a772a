"""Phrase grounding: accuracy, pointing and what surrounds them, under each of the two protocols of the field.

The protocols give numbers many points apart on the same predictions, so a score always carries its protocol and two
protocols never share a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deixis.errors import DeixisError
from deixis.geometry import centres, iou_aligned, union_box
from deixis.metrics.bootstrap import MeanSample, Sample, value_of
from deixis.types import Box

DEPTHS = (1, 5, 10)
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)

Boxes = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Protocol:
    """When a box counts as right."""

    name: str
    merged: bool
    """Whether a phrase's boxes are first merged into the box around all of them."""
    plus_one: bool
    """Whether areas include the last pixel."""
    strict_point: bool
    """Whether a centre on the border of the box is outside."""
    used_by: str


ANY_BOX = Protocol("any-box", merged=False, plus_one=True, strict_point=True, used_by="InfoGround")
MERGED_BOX = Protocol("merged-box", merged=True, plus_one=False, strict_point=False, used_by="ReIR, KAC, GroundeR")
PROTOCOLS = {protocol.name: protocol for protocol in (ANY_BOX, MERGED_BOX)}


@dataclass(frozen=True, slots=True)
class PhraseCase:
    """One phrase: the boxes it was annotated with, and the boxes a grounder ranked for it, best first."""

    image: str
    text: str
    boxes: tuple[Box, ...]
    ranked: tuple[Box, ...]
    types: tuple[str, ...] = ()
    """Coarse classes such as people or clothing; a phrase may have several."""


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The same numbers for a part of the phrases."""

    name: str
    count: int
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class PhraseScores:
    """What a grounder reaches under one protocol."""

    protocol: Protocol
    count: int
    """Phrases scored: those that have boxes."""
    dropped: int
    """Phrases left out because nobody drew a box for them."""
    groups: tuple[str, ...]
    """The photos the samples are made of."""
    samples: Mapping[str, Sample]
    """``R@1``, ``R@5``, ``R@10``, ``pointing``, ``mean_IoU``, ``acc@0.5`` … ``acc@0.9``, and ``bound`` if known."""
    breakdowns: Mapping[str, tuple[GroupScore, ...]]
    """``type`` (the classes of a phrase as written), ``class`` (each coarse class), ``boxes`` (one or several)."""

    @property
    def scores(self) -> dict[str, float]:
        """Every number, from 0 to 1."""
        return {name: value_of(sample) for name, sample in self.samples.items()}


def score_phrases(
    cases: Sequence[PhraseCase], protocol: Protocol, proposals: Mapping[str, Sequence[Box]] | None = None
) -> PhraseScores:
    """Score ranked boxes of phrases.

    Args:
        cases: every phrase of the split; those without reference boxes are dropped, those without a prediction miss.
        protocol: ``ANY_BOX`` or ``MERGED_BOX``.
        proposals: the regions of each photo the grounder could choose from: gives ``bound``, the accuracy of a
            grounder that always picks the best.
    """
    kept = [case for case in cases if case.boxes]
    if not kept:
        raise DeixisError(f"none of the {len(cases)} phrases has a reference box: there is nothing to score")
    truth = [_truth(case.boxes, protocol) for case in kept]
    overlap = _best_overlap([np.array(c.ranked[: DEPTHS[-1]]) for c in kept], truth, DEPTHS[-1], protocol)  # (P, 10)
    values: dict[str, NDArray[np.float64]] = {
        f"R@{depth}": (overlap[:, :depth].max(1) >= 0.5).astype(np.float64) for depth in DEPTHS
    }
    values["pointing"] = np.array(
        [_points(case.ranked, boxes, protocol) for case, boxes in zip(kept, truth, strict=True)], dtype=np.float64
    )
    values["mean_IoU"] = overlap[:, 0]
    values |= {f"acc@{limit}": (overlap[:, 0] >= limit).astype(np.float64) for limit in THRESHOLDS}
    if proposals is not None:
        values["bound"] = _bound(kept, truth, proposals, protocol)
    names = tuple(dict.fromkeys(case.image for case in kept))
    number = {name: at for at, name in enumerate(names)}
    group = np.array([number[case.image] for case in kept], dtype=np.int64)
    return PhraseScores(
        protocol=protocol,
        count=len(kept),
        dropped=len(cases) - len(kept),
        groups=names,
        samples={name: MeanSample.of(value, group, len(names)) for name, value in values.items()},
        breakdowns=_break_down(kept, values),
    )


def _truth(boxes: Sequence[Box], protocol: Protocol) -> Boxes:
    array = np.array(boxes, dtype=np.float64)
    return union_box(array)[None] if protocol.merged else array


def _best_overlap(
    predicted: Sequence[NDArray[np.float64]], truth: Sequence[Boxes], width: int, protocol: Protocol
) -> NDArray[np.float64]:
    """Return for each phrase and rank the best IoU with a reference box, 0 where nothing was predicted, (P, width)."""
    best = np.zeros((len(predicted), width))
    row, column, mine, other = [], [], [], []
    for at, (ranked, boxes) in enumerate(zip(predicted, truth, strict=True)):
        count, size = len(ranked), len(boxes)
        if count:
            row.append(np.full(count * size, at))
            column.append(np.repeat(np.arange(count), size))
            mine.append(np.repeat(ranked.astype(np.float64), size, axis=0))
            other.append(np.tile(boxes, (count, 1)))
    if row:
        found = iou_aligned(np.concatenate(mine), np.concatenate(other), plus_one=protocol.plus_one)
        np.maximum.at(best, (np.concatenate(row), np.concatenate(column)), found)
    return best


def _points(ranked: Sequence[Box], truth: Boxes, protocol: Protocol) -> bool:
    """Whether the centre of the first box falls into a reference box."""
    if not ranked:
        return False
    centre = centres(np.array(ranked[0], dtype=np.float64))
    if protocol.strict_point:
        inside = (truth[:, :2] < centre).all(1) & (centre < truth[:, 2:]).all(1)
    else:
        inside = (truth[:, :2] <= centre).all(1) & (centre <= truth[:, 2:]).all(1)
    return bool(inside.any())


def _bound(
    cases: Sequence[PhraseCase],
    truth: Sequence[Boxes],
    proposals: Mapping[str, Sequence[Box]],
    protocol: Protocol,
) -> NDArray[np.float64]:
    missing = next((case.image for case in cases if case.image not in proposals), None)
    if missing is not None:
        raise DeixisError(f"there are no proposals for image {missing!r}: the upper bound needs those of every photo")
    found = [np.array(proposals[case.image], dtype=np.float64).reshape(-1, 4) for case in cases]
    width = max(1, max(len(boxes) for boxes in found))
    return np.asarray(_best_overlap(found, truth, width, protocol).max(1) >= 0.5, dtype=np.float64)


def _break_down(
    cases: Sequence[PhraseCase], values: Mapping[str, NDArray[np.float64]]
) -> dict[str, tuple[GroupScore, ...]]:
    shown = [name for name in ("R@1", "R@5", "R@10", "pointing", "mean_IoU", "bound") if name in values]
    keys: dict[str, list[tuple[str, ...]]] = {
        "type": [("/".join(case.types),) if case.types else () for case in cases],
        "class": [tuple(dict.fromkeys(case.types)) for case in cases],
        "boxes": [("one" if len(case.boxes) == 1 else "several",) for case in cases],
    }
    found = {}
    for breakdown, names in keys.items():
        members: dict[str, list[int]] = {}
        for at, groups in enumerate(names):
            for group in groups:
                members.setdefault(group, []).append(at)
        ordered: Iterable[tuple[str, list[int]]] = sorted(members.items(), key=lambda entry: (-len(entry[1]), entry[0]))
        found[breakdown] = tuple(
            GroupScore(name, len(rows), {metric: float(values[metric][rows].mean()) for metric in shown})
            for name, rows in ordered
        )
    return {name: groups for name, groups in found.items() if groups}
