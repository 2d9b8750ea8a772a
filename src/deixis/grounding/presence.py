"""How surely a thing is in a photo: a grounder's matching score of the bare word, turned into a probability.

Where a grounder puts its box says little about whether the thing is there at all: attention always sums to one. Its
matching score does, as it was trained to tell photos apart. A logistic curve makes a probability of it, fitted on nouns
that the captioner itself says: present are those that a reference caption of the photo names too. (The grounder's own
calibration is about phrases people wrote; what a captioner makes up is likelier, and so harder to tell from the truth.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from deixis.data.collate import CaptionEncoder, EncodedExample, collate
from deixis.data.pad import pad_regions
from deixis.grounding.logistic import Logistic
from deixis.grounding.logistic import Presence as Presence
from deixis.interfaces import Grounder
from deixis.text.tokens import tokenise
from deixis.text.vocabulary import Vocabulary
from deixis.types import Example, GroundedCaption, Regions, Sentence


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


def probabilities(
    grounder: Grounder, vocabulary: Vocabulary, regions: Regions, words: Sequence[str], presence: Presence
) -> list[float | None]:
    """Return how surely each word names something in a photo, or None for words the grounder does not know."""
    return presence.of_all(match_words(grounder, vocabulary, regions, words))


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
    """Fit the curve to scores (M,) of words that are there and of words that are not."""
    curve = Logistic.fit(scores[:, None], present)
    return Presence(curve.weights[0], curve.bias)
