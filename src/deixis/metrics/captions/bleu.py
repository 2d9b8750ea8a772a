"""BLEU 1 to 4 as the COCO evaluation computes it.

Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation" (ACL 2002), sections 2.1 to 2.3, with
the reference length closest to the caption's (the shorter on a tie) and the tiny constants of the COCO evaluation,
which make a corpus without a single four-word match score almost, not exactly, zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deixis.metrics.captions.ngrams import ORDERS, ReferenceNgrams, Tokens

_SMALL, _TINY = 1e-9, 1e-15


@dataclass(frozen=True, slots=True)
class BleuScores:
    """BLEU-1 to BLEU-4 of the corpus, and of each caption alone."""

    corpus: NDArray[np.float64]  # (4,)
    per_caption: NDArray[np.float64]  # (C, 4)


def bleu(candidates: Sequence[Tokens], ids: Sequence[str], references: ReferenceNgrams) -> BleuScores:
    """Score tokenised captions against the references of the images named by ``ids``.

    A caption without words scores 0; corpus BLEU is computed from summed counts, not from the captions' scores.
    """
    rows = references.rows(ids)
    correct = _correct(candidates, rows, references)  # (C, 4)
    length = np.fromiter(map(len, candidates), np.int64, len(candidates))  # (C,)
    guess = np.maximum(length[:, None] - np.arange(ORDERS), 0)  # (C, 4)
    closest = _closest_length(length, rows, references)  # (C,)
    per_caption = _combine(correct, guess, length, closest)
    corpus = _combine(correct.sum(0)[None], guess.sum(0)[None], length.sum()[None], closest.sum()[None])[0]
    return BleuScores(corpus, per_caption)


def _correct(candidates: Sequence[Tokens], rows: NDArray[np.int64], references: ReferenceNgrams) -> NDArray[np.int64]:
    """Count per caption and order the n-grams found, each at most as often as in any one reference, (C, 4)."""
    found = [np.zeros((0, ORDERS), np.int64)]
    for block in references.blocks(candidates, rows):
        counts = block.counts
        most = np.zeros(len(counts.ngram), np.int64)
        np.maximum.at(most, block.entry, references.count[block.reference_entry])
        cell = counts.caption * ORDERS + counts.order
        clipped = np.bincount(cell, np.minimum(most, counts.count), minlength=len(block.rows) * ORDERS)
        found.append(clipped.astype(np.int64).reshape(-1, ORDERS))
    return np.concatenate(found)


def _closest_length(
    length: NDArray[np.int64], rows: NDArray[np.int64], references: ReferenceNgrams
) -> NDArray[np.int64]:
    """Return for each caption the length of the reference nearest in length, the shorter on a tie, (C,)."""
    first = references.first[rows]
    number = references.first[rows + 1] - first
    begin = np.cumsum(number) - number
    reference = np.arange(int(number.sum())) + np.repeat(first - begin, number)
    lengths = references.lengths[reference]
    distance = np.abs(lengths - np.repeat(length, number))
    if not len(length):
        return length
    # One number that sorts by distance first and by length second.
    return np.minimum.reduceat(distance << 32 | lengths, begin) & ((1 << 32) - 1)


def _combine(
    correct: NDArray[np.int64], guess: NDArray[np.int64], length: NDArray[np.int64], closest: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Geometric mean of the precisions up to each order, times the brevity penalty, (C, 4)."""
    product = np.cumprod((correct + _TINY) / (guess + _SMALL), axis=1)
    score = product ** (1 / np.arange(1, ORDERS + 1))
    ratio = (length + _TINY) / (closest + _SMALL)
    penalty = np.exp(np.minimum(1 - 1 / ratio, 0))
    return np.asarray(score * penalty[:, None], np.float64)
