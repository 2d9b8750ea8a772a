"""What the classes of the regions' detector say of a phrase: where its thing is, and above all that it is not there.

A word names a class by its lemma, by another name or by a wider one ("a man" is a person); two words name one together
("hot dog", "traffic light"), and then the second alone names none. The detector has learned its classes, from boxes of
COCO's categories; nothing here learns, and no phrase has met a box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from deixis.text.coco_names import COCO_NAMES
from deixis.text.rules.hypernyms import wider_names
from deixis.text.rules.lemmas import lemmatise_noun
from deixis.text.vocabulary import SPECIAL_WORDS, Vocabulary

ALSO = {
    "aeroplane": "airplane",
    "aircraft": "airplane",
    "bull": "cow",
    "calf": "cow",
    "cattle": "cow",
    "cellphone": "cell phone",
    "doughnut": "donut",
    "fridge": "refrigerator",
    "hotdog": "hot dog",
    "hydrant": "fire hydrant",
    "lamb": "sheep",
    "purse": "handbag",
    "racket": "tennis racket",
    "racquet": "tennis racket",
    "sofa": "couch",
    "stoplight": "traffic light",
    "television": "tv",
    "wineglass": "wine glass",
}
"""Other names of COCO's classes, beside narrower ones (:mod:`deixis.text.rules.hypernyms`)."""

NAMES = {"coco": COCO_NAMES}
NONE = -1
LEAST, SMALLEST = 1e-6, 1e-3


@dataclass(frozen=True, slots=True)
class LabelOptions:
    """How much the detector's classes count in answers; chosen on validation photos."""

    names: Literal["", "coco"] = ""
    """Whose classes the regions have; none are read for ""."""
    answers: float = 3.0
    """Exponent of a region's probability of the class that the phrase names."""
    presence: float = 0.5
    """How much log-odds below ``-doubt`` that any region has the class take from how present the thing is."""
    doubt: float = 6.0
    known: float = 3.0
    """What is added for a phrase that names a class, so that one threshold serves phrases with and without one."""


@dataclass(frozen=True, slots=True)
class LabelTable:
    """Which class each word names by itself, and which pairs of words name one together."""

    alone: Tensor  # (V,) NONE where it names none
    pairs: Tensor  # (R, 3) first word, second word, class


def label_table(vocabulary: Vocabulary, options: LabelOptions) -> LabelTable:
    """Return what the words of a vocabulary name."""
    names = NAMES.get(options.names, ())
    lemmas = [""] * len(SPECIAL_WORDS) + [entry.lemma or entry.word for entry in vocabulary.entries]
    of = {lemmatise_noun(name): at for at, name in enumerate(names)}
    of |= {other: names.index(name) for other, name in ALSO.items() if name in names}

    def named(word: str) -> int:
        return next((of[name] for name in (word, *sorted(wider_names(word))) if name in of), NONE)

    pairs = [
        (first, second, at)
        for at, name in enumerate(names)
        if len(two := name.split()) == 2
        for first in _spelled(lemmas, two[0])
        for second in _spelled(lemmas, two[1])
    ]
    alone = torch.tensor([named(word) if word else NONE for word in lemmas])
    return LabelTable(alone, torch.tensor(pairs, dtype=torch.long).reshape(-1, 3))


def _spelled(lemmas: list[str], word: str) -> list[int]:
    """Where a word or its lemma stands in a list."""
    return [at for at, lemma in enumerate(lemmas) if lemma in (word, lemmatise_noun(word))]


def labels_of(heads: Tensor, modifiers: Tensor, alone: Tensor, pairs: Tensor) -> Tensor:
    """Return the class that each phrase names, (P,), NONE where none; heads (P,), modifiers (P, T)."""
    labels = alone[heads]
    if not len(pairs):
        return labels
    first = (modifiers.unsqueeze(2) == pairs[:, 0]).any(1)  # (P, R)
    together = first & (heads.unsqueeze(1) == pairs[:, 1])
    return torch.where(together.any(1), pairs[:, 2][together.float().argmax(1)], labels)


def class_log_probability(labels: Tensor, probabilities: Tensor) -> Tensor:
    """Return the logarithm of each region's probability of the class, (P,) and (P, N, C) -> (P, N); 0 without one."""
    wide = labels.clamp(min=0).view(-1, 1, 1).expand(-1, probabilities.shape[1], 1)
    own = probabilities.gather(2, wide).squeeze(2).clamp(min=SMALLEST).log()
    return torch.where(labels.unsqueeze(1) == NONE, torch.zeros_like(own), own)


def doubt_of(labels: Tensor, probabilities: Tensor, mask: Tensor, options: LabelOptions) -> Tensor:
    """Return what to take from the presence of things, at most 0, (P,).

    Args:
        labels: The classes named, (P,), NONE where none.
        probabilities: Of each region, (P, N, C).
        mask: Which regions there are, (P, N).
        options: How much it counts.
    """
    wide = labels.clamp(min=0).view(-1, 1, 1).expand(-1, probabilities.shape[1], 1)
    own = probabilities.gather(2, wide).squeeze(2)
    best = (own * mask).amax(1).clamp(LEAST, 1 - SMALLEST)  # (P,)
    below = (best.logit() + options.doubt).clamp(max=0)
    return options.presence * torch.where(labels == NONE, torch.zeros_like(below), below)
