"""Which generated object word is held against which reference word, and how well their boxes agree.

The rules are those of the public evaluation of GVD and ActivityNet-Entities. Every judgement becomes one row, so that
F1, its variants, error types and intervals are all sums over the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deixis.metrics.grounding.object_words import AnnotatedAttention, GroundedItem, PredictedWord, ReferenceWord

THRESHOLD = 0.5


# What became of a word.
COMPARED = 0
"""Its class is on the other side: the boxes decide."""
ABSENT = 1
"""Its class is not on the other side: hallucinated (precision) or missed (recall)."""
NOT_SUBMITTED = 2
"""Recall only: the submission leaves the item out, which costs in every variant."""


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """R judgements. The box columns are False and 0 in rows that were not compared."""

    item: NDArray[np.int64]  # (R,) position of the item
    reference: NDArray[np.int64]  # (R,) position of the reference within the item
    label: NDArray[np.int64]  # (R,) position of the class
    status: NDArray[np.int8]  # (R,) COMPARED, ABSENT or NOT_SUBMITTED
    iou: NDArray[np.float32]  # (R,) best over boxes on the same frame
    hit: NDArray[np.bool_]  # (R,) IoU above one half
    inside: NDArray[np.bool_]  # (R,) a predicted box lies inside a reference box of its frame
    around: NDArray[np.bool_]  # (R,) a predicted box holds a reference box of its frame


class _Rows:
    """Collects judgements and the pairs of boxes each depends on, so that one array call judges them all."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int, int]] = []
        """Item, reference, class and status of each judgement."""
        self.pair_row: list[int] = []
        self.pair_boxes: list[tuple[float, ...]] = []

    def compare(self, item: int, reference: int, label: int, predicted: PredictedWord, word: ReferenceWord) -> None:
        for box, frame in zip(predicted.boxes, predicted.frames, strict=True):
            for other, other_frame in zip(word.boxes, word.frames, strict=True):
                if frame == other_frame:
                    self.pair_row.append(len(self.rows))
                    self.pair_boxes.append((*box, *other))
        self.rows.append((item, reference, label, COMPARED))

    def judge(self) -> Matches:
        table = np.array(self.rows, dtype=np.int64).reshape(-1, 4)
        boxes = np.array(self.pair_boxes, dtype=np.float32).reshape(-1, 8)
        row = np.array(self.pair_row, dtype=np.int64)
        mine, other = boxes[:, :4], boxes[:, 4:]
        overlap = _iou(mine, other)
        real = ~(_is_point(mine) | _is_point(other))  # a box of one pixel is padding, and never right
        overlap = np.where(real, overlap, np.float32(0))
        iou = np.zeros(len(table), dtype=np.float32)
        np.maximum.at(iou, row, overlap)
        inside, around = np.zeros(len(table), dtype=bool), np.zeros(len(table), dtype=bool)
        inside[row[real & _holds(other, mine)]] = True
        around[row[real & _holds(mine, other)]] = True
        return Matches(
            item=table[:, 0],
            reference=table[:, 1],
            label=table[:, 2],
            status=table[:, 3].astype(np.int8),
            iou=iou,
            hit=iou > THRESHOLD,
            inside=inside,
            around=around,
        )


def match_precision(items: Sequence[GroundedItem], labels: dict[str, int]) -> Matches:
    """Hold every generated word against each reference of its item; ``labels`` numbers the classes and grows.

    A word whose class is in the reference is compared with the first reference word of that class. A class whose lemma
    is an un-annotated token of the reference is left alone: the annotators missed it, not the model.
    """
    rows = _Rows()
    for at, item in enumerate(items):
        words = [(word, word.label, labels.setdefault(word.label, len(labels))) for word in item.predicted or ()]
        for number, reference in enumerate(item.references):
            for word, name, label in words:
                first = reference.first.get(name)
                if first is not None:
                    rows.compare(at, number, label, word, first)
                elif word.lemma not in reference.other_lemmas:
                    rows.rows.append((at, number, label, ABSENT))
    return rows.judge()


def match_recall(items: Sequence[GroundedItem], labels: dict[str, int]) -> Matches:
    """Hold every reference word against the first generated word of its class, in the order of the submission."""
    rows = _Rows()
    for at, item in enumerate(items):
        firsts: dict[str, PredictedWord] = {}
        for predicted in item.predicted or ():
            firsts.setdefault(predicted.label, predicted)
        otherwise = NOT_SUBMITTED if item.predicted is None else ABSENT
        for number, reference in enumerate(item.references):
            for word in reference.words:
                label = labels.setdefault(word.label, len(labels))
                first = firsts.get(word.label)
                if first is not None:
                    rows.compare(at, number, label, first, word)
                else:
                    rows.rows.append((at, number, label, otherwise))
    return rows.judge()


def match_attention(sentences: Sequence[AnnotatedAttention], labels: dict[str, int]) -> Matches:
    """Hold every annotated word of a ground-truth sentence against where the model looked at that very word."""
    rows = _Rows()
    for at, sentence in enumerate(sentences):
        for word in sentence.reference.words:
            label = labels.setdefault(word.label, len(labels))
            predicted = sentence.predicted.get(word.index)
            if predicted is None:
                rows.rows.append((at, 0, label, ABSENT))
            else:
                rows.compare(at, 0, label, predicted, word)
    return rows.judge()


def _iou(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return IoU with areas that include the last pixel, (P, 4), (P, 4) -> (P,).

    Not `geometry.iou_aligned`: in 32-bit floats and in this order of operations a box right at one half falls on the
    side where it falls in the public scripts.
    """
    sides = np.maximum(np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2]) + 1, 0)  # (P, 2)
    shared = sides[:, 0] * sides[:, 1]
    area_a, area_b = ((box[:, 2] - box[:, 0] + 1) * (box[:, 3] - box[:, 1] + 1) for box in (a, b))
    return np.asarray(shared / (area_a + area_b - shared), dtype=np.float32)


def _is_point(boxes: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.asarray((boxes[:, 2:] - boxes[:, :2] + 1 == 1).all(1))


def _holds(outer: NDArray[np.float32], inner: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.asarray((outer[:, :2] <= inner[:, :2]).all(1) & (inner[:, 2:] <= outer[:, 2:]).all(1))
