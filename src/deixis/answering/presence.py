"""How surely a thing is in a photo: a grounder's matching score of the bare word, turned into a probability.

Where a grounder puts its box says little about whether the thing is there at all: attention always sums to one. Its
matching score does, as it was trained to tell photos apart. Platt's scaling (Platt, *Probabilistic Outputs for Support
Vector Machines*, 1999) makes a probability of it, fitted on nouns that the captioner itself says: present are those
that one of a photo's reference captions names too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from deixis.data.collate import CaptionEncoder, EncodedExample, collate
from deixis.data.pad import pad_regions
from deixis.interfaces import Grounder
from deixis.text.tokens import tokenise
from deixis.text.vocabulary import Vocabulary
from deixis.types import Example, GroundedCaption, Regions, Sentence

FOLDS = 5


@dataclass(frozen=True, slots=True)
class Presence:
    """Probability = 1 / (1 + exp(-(slope * score + offset))); below the threshold a word is doubted."""

    slope: float
    offset: float
    threshold: float = 0.5

    def __call__(self, score: float) -> float:
        """Return the probability that a thing with this matching score is there."""
        return float(1 / (1 + np.exp(-np.clip(self.slope * score + self.offset, -50, 50))))


@torch.no_grad()
def match_words(
    grounder: Grounder, vocabulary: Vocabulary, regions: Regions, words: Sequence[str]
) -> list[float | None]:
    """Return how well each word alone fits a photo, or None for words the grounder does not know."""
    known = [word for word in dict.fromkeys(words) if word in vocabulary]
    if not known:
        return [None] * len(words)
    encoder = CaptionEncoder(vocabulary)
    captions = tuple(encoder(Sentence(word, tokenise(word))) for word in known)
    batch = collate([EncodedExample("", captions, tuple(known))], pad_regions([regions]))
    weight = next(iter(grounder.parameters()), None) if isinstance(grounder, torch.nn.Module) else None
    scores = grounder.match(batch if weight is None else batch.to(weight.device)).tolist()
    return [dict(zip(known, scores, strict=True)).get(word) for word in words]


def named_in(example: Example, vocabulary: Vocabulary) -> frozenset[str]:
    """Return the lemmas of all words of a photo's captions."""
    return frozenset(vocabulary.lemma(word) for caption in example.captions for word in caption.words)


def judged_words(
    grounder: Grounder,
    vocabulary: Vocabulary,
    caption: GroundedCaption,
    regions: Regions,
    named: frozenset[str],
) -> list[tuple[float, bool]]:
    """Return score and truth of a caption's things: is the word named in a reference of the photo?"""
    words = [word.text.lower() for word in caption.words if word.groundable]
    scores = match_words(grounder, vocabulary, regions, words)
    pairs = zip(words, scores, strict=True)
    return [(score, vocabulary.lemma(word) in named) for word, score in pairs if score is not None]


def fit_presence(scores: NDArray[np.float64], present: NDArray[np.bool_]) -> Presence:
    """Fit slope and offset by maximum likelihood, with Platt's targets that keep certainty out of small samples."""
    positive, negative = int(present.sum()), int((~present).sum())
    targets = np.where(present, (positive + 1) / (positive + 2), 1 / (negative + 2))
    inputs = np.stack([scores, np.ones_like(scores)], 1)  # (M, 2)
    weights = np.zeros(2)
    for _ in range(50):  # Newton's steps; the loss is convex
        probability = 1 / (1 + np.exp(-np.clip(inputs @ weights, -50, 50)))
        gradient = inputs.T @ (probability - targets)
        curvature = (inputs * (probability * (1 - probability))[:, None]).T @ inputs + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    return Presence(float(weights[0]), float(weights[1]))


def cross_fitted(
    scores: NDArray[np.float64], present: NDArray[np.bool_], group: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return each word's probability by a fit that did not see its photo."""
    found = np.zeros_like(scores)
    for fold in range(FOLDS):
        out = group % FOLDS == fold
        model = fit_presence(scores[~out], present[~out])
        found[out] = [model(score) for score in scores[out]]
    return found


def auc(scores: NDArray[np.float64], present: NDArray[np.bool_]) -> float:
    """Return the probability that a thing that is there has a higher score than one that is not; ties count half."""
    order = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(order[2]) - (order[2] - 1) / 2  # mean rank of equal values
    own = ranks[order[1]]
    positive, negative = int(present.sum()), int((~present).sum())
    if not positive or not negative:
        return float("nan")
    return float((own[present].sum() - positive * (positive + 1) / 2) / (positive * negative))


def calibration_error(probability: NDArray[np.float64], present: NDArray[np.bool_], bins: int = 10) -> float:
    """Return the expected calibration error: how far probabilities are from frequencies, in ten bins."""
    which = np.minimum((probability * bins).astype(int), bins - 1)
    gaps = [
        abs(probability[which == at].mean() - present[which == at].mean()) * (which == at).mean()
        for at in range(bins)
        if (which == at).any()
    ]
    return float(sum(gaps))
