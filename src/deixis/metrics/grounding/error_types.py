"""Where grounding goes wrong: the five types of Distributed Attention, section 4.5, and the three of its figure 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deixis.metrics.bootstrap import MeanSample
from deixis.metrics.grounding.f1 import score_grounding
from deixis.metrics.grounding.object_words import GroundedItem
from deixis.metrics.grounding.word_matches import ABSENT, COMPARED, THRESHOLD, match_precision, match_recall

FIVE_TYPES = ("missed_class", "hallucinated_class", "correct", "partial", "other")
THREE_TYPES = ("partial", "enlarged", "deviated")


@dataclass(frozen=True, slots=True)
class ErrorTypes:
    """Counts of words by type, and the F1 that would be had if every partial grounding were right."""

    five: Mapping[str, int]
    three: Mapping[str, int]
    """Only the words whose class is right and whose box is wrong."""
    bound: Mapping[str, float]
    """All the F1 numbers with partial groundings counted as right."""

    @property
    def five_shares(self) -> dict[str, float]:
        """Shares of all five types; they sum to 1 (table 4 of the paper)."""
        return _shares(self.five)

    @property
    def three_shares(self) -> dict[str, float]:
        """Shares of the wrong boxes; they sum to 1 (figure 2 of the paper)."""
        return _shares(self.three)


def classify_errors(items: Sequence[GroundedItem], *, photos: bool | None = None) -> ErrorTypes:
    """Sort every object word of submitted items into its type, each reference of a photo separately.

    Missed: a reference word whose class was not generated. Hallucinated: a generated word whose class is not in the
    reference. The others are generated words of the right class: correct (IoU above one half), partial (the box lies
    inside a reference box, IoU below one half), other. Generated words that F1 ignores are ignored here too.
    The three-way split asks of every wrong box whether it lies inside a reference box (partial), holds one (enlarged)
    or neither (deviated).
    """
    submitted = [item for item in items if item.predicted is not None]
    labels: dict[str, int] = {}
    precision, recall = match_precision(submitted, labels), match_recall(submitted, labels)
    compared = precision.status == COMPARED
    wrong = compared & ~precision.hit
    partial = wrong & precision.inside & (precision.iou < THRESHOLD)
    five = {
        "missed_class": int((recall.status == ABSENT).sum()),
        "hallucinated_class": int((precision.status == ABSENT).sum()),
        "correct": int((compared & precision.hit).sum()),
        "partial": int(partial.sum()),
        "other": int((wrong & ~partial).sum()),
    }
    enlarged = wrong & ~partial & precision.around
    three = {
        "partial": five["partial"],
        "enlarged": int(enlarged.sum()),
        "deviated": five["other"] - int(enlarged.sum()),
    }
    return ErrorTypes(five, three, score_grounding(items, photos=photos, partial_is_right=True).scores)


def right_boxes(items: Sequence[GroundedItem], groups: Sequence[str]) -> MeanSample:
    """Return how many generated words of the right class have a right box, pooled over words, per group of items.

    Each reference of a photo counts separately. Unlike the macro F1 it does not hang on classes that are hardly said,
    so two runs differ by less where nothing differs.
    """
    submitted = [item for item in items if item.predicted is not None]
    found = match_precision(submitted, {})
    place = {name: at for at, name in enumerate(groups)}
    total, count = np.zeros(len(groups)), np.zeros(len(groups))
    for at, status, hit in zip(found.item, found.status, found.hit, strict=True):
        if status == COMPARED:
            own = place[submitted[at].drawn_with]
            total[own] += float(hit)
            count[own] += 1
    return MeanSample(total, count)


def _shares(counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {name: count / total if total else 0.0 for name, count in counts.items()}
