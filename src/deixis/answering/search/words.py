"""How well single words fit photos: the numbers that the first stage of a search adds up.

A grounder says how well a caption fits a photo (``match``), so it can be asked about each word of its vocabulary by
itself, once per photo. For the shipped grounder the match of a sentence *is* the mean over its nouns and adjectives
(``LiteGrounder.match``), so that the first stage ranks exactly as the second does; for others it is a good guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from deixis.data.batch import Batch, RegionBatch, WordKind
from deixis.data.collate import CaptionEncoder, EncodedExample, collate
from deixis.errors import DeixisError
from deixis.grounding.base import LONGEST_SENTENCE
from deixis.grounding.lite.model import LiteGrounder
from deixis.interfaces import Grounder
from deixis.text.tokens import tokenise
from deixis.text.vocabulary import ADJECTIVE_TAGS, NOUN_TAGS, UNKNOWN, VERB_TAGS, Vocabulary
from deixis.types import Sentence

Floats = NDArray[np.float32]
PAIRS_AT_ONCE = 4096
"""Pairs of a word and a photo that share a pass: bounds the memory, whatever the vocabulary."""
_TELLING = NOUN_TAGS | ADJECTIVE_TAGS | VERB_TAGS


def telling_words(vocabulary: Vocabulary) -> list[str]:
    """Return the words that an index keeps scores of: nouns, adjectives and verbs, in the vocabulary's order."""
    return [entry.word for entry in vocabulary.entries if entry.tag in _TELLING]


@torch.no_grad()
def word_scores(grounder: Grounder, vocabulary: Vocabulary, words: Sequence[str], regions: RegionBatch) -> Floats:
    """Return how well each word alone fits each photo, (W, B)."""
    if isinstance(grounder, LiteGrounder):  # scores every word against every photo in one product
        ids = torch.tensor([vocabulary.id(word) for word in words], device=regions.features.device)
        found: Floats = grounder.match_of_words(ids, regions).float().cpu().numpy()
        return found
    encoder = CaptionEncoder(vocabulary)
    encoded = [encoder(Sentence(word, tokenise(word))) for word in words]
    device = regions.features.device
    said = torch.tensor([caption.words for caption in encoded], device=device)  # (W, 2) the word and the end
    tags = torch.tensor([(*caption.tags, WordKind.OTHER) for caption in encoded], device=device)
    scores = np.empty((len(words), len(regions)), dtype=np.float32)
    for photo in range(len(regions)):
        for first in range(0, len(words), PAIRS_AT_ONCE):
            some = slice(first, first + PAIRS_AT_ONCE)
            image_of = torch.full((len(said[some]),), photo, device=device)
            batch = Batch(regions=regions, words=said[some], tags=tags[some], image_of=image_of)
            scores[some, photo] = grounder.match(batch).float().cpu().numpy()
    return scores


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for: a sentence with its phrases, and the words of it that are looked up in the table."""

    sentence: Sentence
    words: tuple[str, ...]

    @classmethod
    def of(cls, sentence: Sentence, vocabulary: Vocabulary, table: Sequence[str]) -> Query:
        """Choose the words of a sentence: its known nouns and adjectives, or what else it has that is in the table."""
        encoded = CaptionEncoder(vocabulary, LONGEST_SENTENCE)(sentence)
        kept = frozenset(table)
        said = [
            (vocabulary.words[word], kind)
            for word, kind in zip(encoded.words, encoded.tags, strict=False)  # the end has no kind
            if word != UNKNOWN and vocabulary.words[word] in kept
        ]
        named = tuple(word for word, kind in said if kind in (WordKind.NOUN, WordKind.ADJECTIVE))
        words = named or tuple(word for word, _ in said)
        if words:
            return cls(sentence, words)
        raise DeixisError(
            f"the model knows no word of {sentence.text!r} that names something: say it in other, commoner words"
        )


@torch.no_grad()
def match_sentence(grounder: Grounder, vocabulary: Vocabulary, sentence: Sentence, regions: RegionBatch) -> Floats:
    """Return how well one sentence fits each of several photos, (B,)."""
    encoder = CaptionEncoder(vocabulary, LONGEST_SENTENCE)
    caption = encoder(sentence)
    examples = [EncodedExample(name, (caption,), (sentence.text,)) for name in regions.ids]
    found: Floats = grounder.match(collate(examples, regions)).float().cpu().numpy()
    return found
