"""Sentences as numbers: words become ids, phrases spans of word positions. It runs without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deixis.text.tokens import normal_word
from deixis.text.vocabulary import Vocabulary
from deixis.text.vocabulary import WordKind as WordKind
from deixis.types import Box, Phrase, Sentence

if TYPE_CHECKING:
    from deixis.text.relations import RelationVocabulary


Labeller = Callable[[Sentence, Phrase], int]
"""Gives the object class of a phrase, -1 for none."""


@dataclass(frozen=True, slots=True)
class EncodedPhrase:
    """A phrase as a span of word positions, with its human boxes where supervision was asked for."""

    first: int
    last: int
    head: int
    boxes: tuple[Box, ...] = ()
    frames: tuple[int, ...] = ()
    label: int = -1


@dataclass(frozen=True, slots=True)
class EncodedCaption:
    """A caption as numbers; ``words`` ends with the end token, ``tags`` is one shorter."""

    words: tuple[int, ...]
    tags: tuple[int, ...]
    phrases: tuple[EncodedPhrase, ...] = ()
    relations: tuple[tuple[int, int, int], ...] = ()
    """Subject and object as indices into ``phrases``, the predicate's id between them."""


@dataclass(frozen=True, slots=True)
class CaptionEncoder:
    """Turns sentences into numbers.

    Args:
        vocabulary: The words the model knows; others become the unknown word.
        length: Words after which a caption is cut. The end token always follows.
        relations: Ids of the predicates of relations; without it relations are left out.
        supervision: Whether to keep the human boxes. Off everywhere but in supervised bounds.
        label: Object class of a phrase, asked only under supervision.
    """

    vocabulary: Vocabulary
    length: int = 20
    relations: RelationVocabulary | None = None
    supervision: bool = False
    label: Labeller | None = None

    def __call__(self, sentence: Sentence) -> EncodedCaption:
        """Encode one caption."""
        place: dict[int, int] = {}  # token -> word position
        words: list[str] = []
        tags: list[int] = []
        for at, token in enumerate(sentence.tokens):
            word = normal_word(token.text)
            if word is None:
                continue
            if len(words) == self.length:
                break
            place[at] = len(words)
            words.append(word)
            tags.append(self._kind(word, token.tag))
        phrases: list[EncodedPhrase] = []
        row: dict[int, int] = {}  # phrase of the sentence -> kept phrase
        for number, phrase in enumerate(sentence.phrases):
            kept = self._phrase(sentence, phrase, place, tags)
            if kept is not None:
                row[number] = len(phrases)
                phrases.append(kept)
        relations: list[tuple[int, int, int]] = []
        if self.relations is not None:
            relations = [
                (row[relation.subject], self.relations.id(relation.predicate), row[relation.object])
                for relation in sentence.relations
                if relation.subject in row and relation.object in row
            ]
        numbers = tuple(self.vocabulary.encode(words, end=True))
        return EncodedCaption(numbers, tuple(tags), tuple(phrases), tuple(relations))

    def _kind(self, word: str, tag: str | None) -> int:
        if tag is None:  # not parsed: what the word mostly is
            entry = self.vocabulary.entry(word)
            tag = entry.tag if entry is not None else None
        return WordKind.of(tag)

    def _phrase(
        self, sentence: Sentence, phrase: Phrase, place: Mapping[int, int], tags: Sequence[int]
    ) -> EncodedPhrase | None:
        """Return a phrase in word positions, or None where the cut took its head or it has no word at all."""
        inside = [place[at] for at in range(phrase.first, phrase.last) if at in place]
        if not inside or (phrase.head is not None and phrase.head not in place):
            return None
        if phrase.head is not None:
            head = place[phrase.head]
        else:  # English noun phrases mostly end with their head noun
            if any(
                at not in place and normal_word(sentence.tokens[at].text) for at in range(phrase.first, phrase.last)
            ):
                return None  # cut
            head = next((at for at in reversed(inside) if tags[at] == WordKind.NOUN), inside[-1])
        boxes = phrase.boxes if self.supervision else ()
        return EncodedPhrase(
            inside[0],
            inside[-1] + 1,
            head,
            boxes,
            (phrase.frames or (0,) * len(boxes)) if boxes else (),
            self.label(sentence, phrase) if self.supervision and self.label is not None else -1,
        )
