"""A sentence: text, tokens with exact character spans, noun phrases, and relations between the phrases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Box = tuple[float, float, float, float]
"""x1 y1 x2 y2, in pixels of the image as it is shown (after EXIF rotation)."""


def box_of(row: Iterable[float]) -> Box:
    """Return four numbers as a box."""
    x1, y1, x2, y2 = row
    return x1, y1, x2, y2


@dataclass(frozen=True, slots=True)
class Token:
    """One token; ``text`` is exactly ``sentence.text[start:end]``. Tag and lemma are None until parsed."""

    text: str
    start: int
    end: int
    tag: str | None = None
    """Penn Treebank tag, such as NN or VBG."""
    lemma: str | None = None


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase: tokens ``first`` to ``last`` (exclusive) of its sentence, and its boxes if annotated.

    ``frames`` runs parallel to ``boxes`` (all 0 for a photo). ``head`` is the index of the head token in the sentence.
    """

    first: int
    last: int
    entity: str | None = None
    """Coreference chain (Flickr30k Entities) or object id; phrases with one entity name the same thing."""
    types: tuple[str, ...] = ()
    """Coarse types such as people, clothing, scene."""
    boxes: tuple[Box, ...] = ()
    frames: tuple[int, ...] = ()
    head: int | None = None
    label: str | None = None
    """Object class given by the dataset (ActivityNet-Entities), if any."""
    visual: bool = True
    """False for phrases the annotators marked as not visual (chain 0 of Flickr30k Entities)."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Phrase ``subject`` and phrase ``object`` (indices into ``Sentence.phrases``) with what joins them."""

    subject: int
    predicate: str
    object: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """A caption or a typed sentence. Token spans index ``text`` exactly; phrase spans index ``tokens``."""

    text: str
    tokens: tuple[Token, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    relations: tuple[Relation, ...] = ()

    def phrase_span(self, phrase: Phrase) -> tuple[int, int]:
        """Return the characters of a phrase as (start, end)."""
        return self.tokens[phrase.first].start, self.tokens[phrase.last - 1].end

    def phrase_text(self, phrase: Phrase) -> str:
        """Return a phrase as it stands in the text."""
        start, end = self.phrase_span(phrase)
        return self.text[start:end]

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens in lower case, with punctuation still among them."""
        return tuple(token.text.lower() for token in self.tokens)
