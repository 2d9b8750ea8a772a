"""What the classes of the regions' detector say of a phrase: where its thing is, and above all that it is not there.

A word names a class by its lemma, by another name or by a wider one ("a man" is a person); two words name one together
("hot dog", "traffic light"), and then the second alone names none. The detector has learned its classes, from boxes of
COCO's categories; nothing here learns, and no phrase has met a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.errors import DeixisError
from deixis.text.coco_names import COCO_NAMES
from deixis.text.rules.hypernyms import wider_names
from deixis.text.rules.lemmas import lemmatise_noun
from deixis.text.vocabulary import PAD, SPECIAL_WORDS, Vocabulary

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
    """How sure of the opposite the detector must be before it takes anything."""
    known: float = 3.0
    """What is added for a phrase that names a class, so that one threshold serves phrases with and without one."""


class Labels(nn.Module):
    """Which classes the words of a vocabulary name, and what regions that have such classes say then."""

    alone: Tensor  # (V,) the class a word names by itself, NONE where it names none
    pairs: Tensor  # (R, 3) first word, second word, the class they name together

    def __init__(self, options: LabelOptions, classes: int, vocabulary: Vocabulary) -> None:
        """Take how many classes the regions have; where they have none, no word names any."""
        super().__init__()
        self.options = options
        self.in_use = bool(options.names and classes)
        if self.in_use and classes != len(NAMES[options.names]):
            raise DeixisError(
                f'model.labels.names is {options.names}, but these regions have {classes} classes: set it to ""'
            )
        names = NAMES[options.names] if self.in_use else ()
        alone, pairs = named_by(vocabulary, names)
        self.register_buffer("alone", alone, persistent=False)  # the vocabulary's file says it all
        self.register_buffer("pairs", pairs, persistent=False)

    def of_phrases(self, heads: Tensor, modifiers: Tensor) -> Tensor:
        """Return the class that each phrase names, (P,), NONE where none; heads (P,), modifiers (P, T)."""
        labels = self.alone[heads]
        if not len(self.pairs):
            return labels
        first = (modifiers.unsqueeze(2) == self.pairs[:, 0]).any(1)  # (P, R)
        together = first & (heads.unsqueeze(1) == self.pairs[:, 1])
        return torch.where(together.any(1), self.pairs[:, 2][together.float().argmax(1)], labels)

    def of_words(self, words: Tensor, nouns: Tensor) -> Tensor:
        """Return the class that each word names by itself, (M,): only nouns name one, "orange" may be a colour."""
        return torch.where(nouns, self.alone[words], NONE)

    def of_captions(self, words: Tensor, nouns: Tensor) -> Tensor:
        """Return the class that each word names, (C, T): only nouns that no noun follows, for "a train station"."""
        last = nouns & ~F.pad(nouns[:, 1:], (0, 1))
        before = F.pad(words[:, :-1], (1, 0), value=PAD)
        return torch.where(last, self.of_phrases(words.flatten(), before.reshape(-1, 1)).view_as(words), NONE)

    def leaning(self, labels: Tensor, probabilities: Tensor) -> Tensor:
        """Return what each region's probability of the class adds to its logit, (P,) and (P, N, C) -> (P, N)."""
        wide = labels.clamp(min=0).view(-1, 1, 1).expand(-1, probabilities.shape[1], 1)
        own = probabilities.gather(2, wide).squeeze(2).clamp(min=SMALLEST).log()
        return self.options.answers * torch.where(labels.unsqueeze(1) == NONE, torch.zeros_like(own), own)

    def doubt(self, labels: Tensor, best: Tensor) -> Tensor:
        """Return what to take from the presence of things, at most 0, where no region has more of the class than best.

        The classes and their probabilities have one shape, or are broadcast.
        """
        below = (best.clamp(LEAST, 1 - SMALLEST).logit() + self.options.doubt).clamp(max=0)
        return self.options.presence * torch.where(labels == NONE, torch.zeros_like(below), below)

    def levelling(self, labels: Tensor) -> Tensor:
        """Return what is added to the presence of phrases that name a class, (P,)."""
        return self.options.known * (labels != NONE)


def named_by(vocabulary: Vocabulary, names: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Return the class each word names alone, (V,), and the pairs of words that name one together, (R, 3)."""
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
    return alone, torch.tensor(pairs, dtype=torch.long).reshape(-1, 3)


def _spelled(lemmas: list[str], word: str) -> list[int]:
    """Where a word or its lemma stands in a list."""
    return [at for at, lemma in enumerate(lemmas) if lemma in (word, lemmatise_noun(word))]
