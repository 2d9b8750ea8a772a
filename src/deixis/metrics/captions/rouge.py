"""ROUGE-L as the COCO evaluation computes it.

Lin, "ROUGE: A Package for Automatic Evaluation of Summaries" (2004), section 3.1: the longest common subsequence of a
caption and a reference gives precision and recall. The COCO evaluation takes the best precision and the best recall
over the references (they may come from different ones) and weighs recall with beta = 1.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deixis.errors import DeixisError
from deixis.metrics.captions.ngrams import Token, Tokens


def rouge_l(
    candidates: Sequence[Tokens], references: Sequence[Sequence[Tokens]], beta: float = 1.2
) -> NDArray[np.float64]:
    """Return ROUGE-L of each tokenised caption against its references, (C,); the corpus score is the mean.

    A caption without words scores 0, unless one of its references has no words either: then 1, as in the original.
    """
    if len(candidates) != len(references):
        raise DeixisError(f"{len(candidates)} captions but references for {len(references)}: one list for each caption")
    scores = [_score(caption, refs, beta) for caption, refs in zip(candidates, references, strict=True)]
    return np.array(scores, np.float64)


def _score(caption: Tokens, references: Sequence[Tokens], beta: float) -> float:
    if not references:
        raise DeixisError("a caption has no references to be compared with: give at least one")
    caption = caption or ("",)
    places = _places(caption)
    longest = recall = 0.0
    for reference in references:
        common = _common(places, len(caption), reference or ("",))
        longest = max(longest, common)
        recall = max(recall, common / max(len(reference), 1))
    precision = longest / len(caption)
    if not precision:
        return 0.0
    return (1 + beta**2) * precision * recall / (recall + beta**2 * precision)


def _places(caption: Tokens) -> dict[Token, int]:
    """Return for each word the bits of the places where it stands."""
    places: dict[Token, int] = {}
    for place, word in enumerate(caption):
        places[word] = places.get(word, 0) | 1 << place
    return places


def _common(places: dict[Token, int], length: int, reference: Tokens) -> int:
    """Length of the longest common subsequence, one row of the table at a time in the bits of one integer.

    Hyyrö, "Bit-parallel LCS-length computation revisited" (AWOCA 2004): a zero bit marks a column where the row
    steps up.
    """
    row = full = (1 << length) - 1
    get = places.get
    for word in reference:
        step = row & get(word, 0)
        row = (row + step) | (row - step)
    return length - (row & full).bit_count()
