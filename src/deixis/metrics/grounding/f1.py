"""Grounding F1 of generated captions: F1_all and F1_loc, per object class (GVD) and per sentence (Cyclical 4.1).

``all`` punishes object words that are wrong as words; ``loc`` judges only the words that are right. The rules
are those of the public evaluation scripts of ActivityNet-Entities (clips) and GVD (photos); ``docs/metrics.md`` lists
them one by one, and says what they were and were not checked against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deixis.errors import DeixisError
from deixis.metrics.bootstrap import Floats, MacroSample, MeanSample, Sample, value_of
from deixis.metrics.grounding.object_words import GroundedItem, pool
from deixis.metrics.grounding.word_matches import ABSENT, Matches, match_precision, match_recall

MODES = ("all", "loc")


@dataclass(frozen=True, slots=True)
class ClassScore:
    """Precision and recall of one object class, each with how many words they are the mean of."""

    label: str
    precision: float
    precision_count: int
    recall: float
    recall_count: int

    @property
    def f1(self) -> float:
        """Harmonic mean of this class's precision and recall."""
        return harmonic_mean(self.precision, self.recall)


@dataclass(frozen=True, slots=True, eq=False)
class GroundingF1:
    """What a submission reaches. ``samples`` holds every number under the name the original scripts print."""

    samples: Mapping[str, Sample]
    classes: Mapping[str, tuple[ClassScore, ...]]
    """For each mode, the classes of the references of submitted items, most frequent first."""
    groups: tuple[str, ...]
    """The photos or clips the samples are made of."""
    generated_share: float
    """Share of the annotated object classes that the captions ever use (Cyclical 4.1)."""
    items: int
    submitted: int

    @property
    def scores(self) -> dict[str, float]:
        """Every number, from 0 to 1, such as ``F1_all``, ``precision_loc_per_sent``."""
        return {name: value_of(sample) for name, sample in self.samples.items()}


def score_grounding(
    items: Sequence[GroundedItem], *, photos: bool | None = None, partial_is_right: bool = False
) -> GroundingF1:
    """Score generated sentences against their references.

    Args:
        items: every item of the split, submitted or not; recall counts what a submission leaves out.
        photos: pool the references of each item for the per-sentence numbers, as is done for photos; never for clips,
            which have one reference. By default: whether any item has several.
        partial_is_right: count a box inside the reference box as right, for the upper bound of Distributed
            Attention 4.5.

    Raises:
        DeixisError: no submitted item has an annotated reference, so there is nothing to divide by.
    """
    labels: dict[str, int] = {}
    for name in dict.fromkeys(name for item in items for reference in item.references for name in reference.first):
        labels[name] = len(labels)
    precision, recall = match_precision(items, labels), match_recall(items, labels)
    group_names = tuple(dict.fromkeys(item.drawn_with for item in items))
    number = {name: at for at, name in enumerate(group_names)}
    group_of = np.array([number[item.drawn_with] for item in items], dtype=np.int64)
    present = np.zeros((len(group_names), len(labels)))
    for at, item in enumerate(items):
        if item.predicted is not None:
            for reference in item.references:
                present[group_of[at], [labels[label] for label in reference.first]] = 1
    if not present.any():
        raise DeixisError("no submitted item has an annotated object word in its references: there is nothing to score")

    if photos is None:
        photos = any(len(item.references) > 1 for item in items)
    pooled = [replace(item, references=pool(item.references)) for item in items] if photos else items
    pooled_precision, pooled_recall = match_precision(pooled, labels), match_recall(pooled, labels)
    submitted = np.array([item.predicted is not None for item in items])
    referenced = np.array([bool(item.references) for item in items])
    samples: dict[str, Sample] = {}
    classes: dict[str, tuple[ClassScore, ...]] = {}
    for mode in MODES:
        p, r = _rows_of(precision, mode), _rows_of(recall, mode)
        macro = MacroSample(
            precision_hits=_tally(precision, p & _right(precision, partial_is_right), group_of, present.shape),
            precision_count=_tally(precision, p, group_of, present.shape),
            recall_hits=_tally(recall, r & _right(recall, partial_is_right), group_of, present.shape),
            recall_count=_tally(recall, r, group_of, present.shape),
            present=present,
        )
        samples |= {f"{_shown(part)}_{mode}": replace(macro, part=part) for part in ("precision", "recall", "f1")}
        classes[mode] = _class_scores(macro, labels)
        per_sentence = _per_sentence(
            pooled_precision, pooled_recall, mode, submitted, referenced, group_of, partial_is_right
        )
        samples |= {f"{_shown(part)}_{mode}_per_sent": sample for part, sample in per_sentence.items()}
    return GroundingF1(
        samples=samples,
        classes=classes,
        groups=group_names,
        generated_share=generated_share(items),
        items=len(items),
        submitted=int(submitted.sum()),
    )


def generated_share(items: Sequence[GroundedItem]) -> float:
    """Return which share of the object classes annotated in the references the captions use at least once."""
    annotated = {label for item in items for reference in item.references for label in reference.first}
    generated = {word.label for item in items for word in item.predicted or ()}
    return len(annotated & generated) / len(annotated) if annotated else 0.0


def f1_by_frequency(
    classes: Sequence[ClassScore], frequency: Mapping[str, int] | None = None, groups: int = 10
) -> list[tuple[int, float]]:
    """Return (number of classes, mean class F1) of ``groups`` equal groups, most frequent first (Cyclical, figure 4).

    ``frequency`` counts annotated boxes per class in the training set, as the paper sorts; without it the number of
    reference words here decides. Classes equally frequent stay in alphabetical order.
    """
    count = frequency if frequency is not None else {score.label: score.recall_count for score in classes}
    ordered = sorted(classes, key=lambda score: (-count.get(score.label, 0), score.label))
    parts = np.array_split(np.arange(len(ordered)), groups)
    return [(len(part), float(np.mean([ordered[at].f1 for at in part]))) for part in parts if len(part)]


def relative_gain(value: float, unsupervised: float, supervised: float) -> float:
    """Return how much of the way from the unsupervised to the supervised run was gone (Cyclical, tables 1 and 2).

    0 is the unsupervised baseline and 1 the supervised one; the paper prints it as (+26%).
    """
    if supervised == unsupervised:
        raise DeixisError(f"the supervised and the unsupervised run both score {supervised:g}: no gap to measure in")
    return (value - unsupervised) / (supervised - unsupervised)


def harmonic_mean(a: float, b: float) -> float:
    """Return the harmonic mean of two numbers, 0 where both are 0."""
    return 2 * a * b / (a + b) if a + b > 0 else 0.0


def _shown(part: str) -> str:
    return "F1" if part == "f1" else part


def _rows_of(matches: Matches, mode: str) -> NDArray[np.bool_]:
    """Which rows take part: ``loc`` leaves out absent classes, but never an item that was not submitted."""
    return np.ones(len(matches.item), dtype=bool) if mode == "all" else matches.status != ABSENT


def _right(matches: Matches, partial_is_right: bool) -> NDArray[np.bool_]:
    return matches.hit | matches.inside if partial_is_right else matches.hit


def _tally(matches: Matches, chosen: NDArray[np.bool_], group_of: NDArray[np.int64], shape: tuple[int, ...]) -> Floats:
    """Count the chosen rows per group and class, (G, L)."""
    cell = group_of[matches.item[chosen]] * shape[1] + matches.label[chosen]
    return np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _class_scores(macro: MacroSample, labels: Mapping[str, int]) -> tuple[ClassScore, ...]:
    sums = {name: getattr(macro, name).sum(0) for name in ("precision_hits", "precision_count", "recall_hits")}
    recall_count, seen = macro.recall_count.sum(0), macro.present.sum(0) > 0
    scores = [
        ClassScore(
            label=label,
            precision=float(sums["precision_hits"][at] / max(sums["precision_count"][at], 1)),
            precision_count=int(sums["precision_count"][at]),
            recall=float(sums["recall_hits"][at] / max(recall_count[at], 1)),
            recall_count=int(recall_count[at]),
        )
        for label, at in labels.items()
        if seen[at]
    ]
    return tuple(sorted(scores, key=lambda score: (-score.recall_count, score.label)))


def _per_sentence(
    precision: Matches,
    recall: Matches,
    mode: str,
    submitted: NDArray[np.bool_],
    referenced: NDArray[np.bool_],
    group_of: NDArray[np.int64],
    partial_is_right: bool,
) -> dict[str, MeanSample]:
    """Average precision, recall and F1 over the submitted sentences.

    A referenced sentence with no recall row is skipped. One with no precision row scores 0 in precision. A submitted
    sentence that nobody annotated earns nothing and still divides.
    """
    size = len(submitted)
    parts = {}
    for name, matches in (("precision", precision), ("recall", recall)):
        chosen = _rows_of(matches, mode)
        right = np.bincount(matches.item[chosen & _right(matches, partial_is_right)], minlength=size)
        parts[name] = (right.astype(np.float64), np.bincount(matches.item[chosen], minlength=size).astype(np.float64))
    (p_right, p_rows), (r_right, r_rows) = parts["precision"], parts["recall"]
    counted = submitted & ~(referenced & (r_rows == 0))
    p = np.where(counted, p_right / np.maximum(p_rows, 1), 0)
    r = np.where(counted, r_right / np.maximum(r_rows, 1), 0)
    f1 = np.divide(2 * p * r, p + r, out=np.zeros(size), where=p + r > 0)
    groups = int(group_of.max()) + 1
    count = np.bincount(group_of[counted], minlength=groups).astype(np.float64)
    return {
        name: MeanSample(np.bincount(group_of, weights=value, minlength=groups).astype(np.float64), count)
        for name, value in (("precision", p), ("recall", r), ("f1", f1))
    }
