"""Attention accuracy on ground-truth sentences: feed the reference, look where the model attends at each object word.

Used by GVD for its supervised models and by Cyclical 4.4 to compare decoder and localizer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deixis.errors import DeixisError
from deixis.metrics.bootstrap import MacroSample, value_of
from deixis.metrics.grounding.object_words import AnnotatedAttention
from deixis.metrics.grounding.word_matches import match_attention


@dataclass(frozen=True, slots=True, eq=False)
class AttentionAccuracy:
    """The mean over object classes of each class's share of hits."""

    sample: MacroSample
    classes: Mapping[str, tuple[float, int]]
    """For each class its accuracy and its number of annotated words, most frequent first."""
    groups: tuple[str, ...]
    sentences: int

    @property
    def accuracy(self) -> float:
        """From 0 to 1."""
        return value_of(self.sample)


def score_attention(sentences: Sequence[AnnotatedAttention]) -> AttentionAccuracy:
    """Score where a model looked at the annotated words of ground-truth sentences.

    A hit is a box with IoU above one half with any box of the word; a word without a box is a miss. Every class of the
    references counts, also where the submission leaves out whole items.
    """
    labels: dict[str, int] = {}
    matches = match_attention(sentences, labels)
    if not labels:
        raise DeixisError("the references have no annotated object word: there is nothing to score")
    names = tuple(dict.fromkeys(sentence.group or sentence.id for sentence in sentences))
    number = {name: at for at, name in enumerate(names)}
    group_of = np.array([number[sentence.group or sentence.id] for sentence in sentences])
    shape = (len(names), len(labels))
    cell = group_of[matches.item] * shape[1] + matches.label
    count = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    hits = np.bincount(cell[matches.hit], minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    nothing = np.zeros(shape)
    sample = MacroSample(nothing, nothing, hits, count, (count > 0).astype(np.float64), part="recall")
    totals, right = count.sum(0), hits.sum(0)
    ordered = sorted(labels, key=lambda label: (-totals[labels[label]], label))
    classes = {k: (float(right[labels[k]] / totals[labels[k]]), int(totals[labels[k]])) for k in ordered}
    return AttentionAccuracy(sample, classes, names, len(sentences))
