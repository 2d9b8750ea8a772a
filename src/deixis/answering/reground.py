"""The boxes of a caption's words from a separate grounder, in place of where the captioner looked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from deixis.answering.apart import point_apart, words_without_thing
from deixis.text.rules.chunker import chunk
from deixis.text.vocabulary import Vocabulary
from deixis.types import GroundedCaption, GroundedPhrase, GroundedPhrases, GroundedWord, Sentence

Seen = TypeVar("Seen", contravariant=True)
"""What a grounder looks at: :class:`deixis.types.Regions`, or arrays where there is no torch (``deixis.portable``)."""


class Points(Protocol[Seen]):
    """As much of a :class:`deixis.interfaces.Grounder` as pointing needs."""

    def ground(self, regions: Seen, sentence: Sentence) -> GroundedPhrases:
        """Find the boxes of a sentence's phrases."""
        ...


def reground(
    caption: GroundedCaption, regions: Seen, grounder: Points[Seen], vocabulary: Vocabulary
) -> GroundedCaption:
    """Replace the boxes of a caption's words by those that a separate grounder finds for its noun phrases.

    The phrases are read together (:mod:`deixis.answering.apart`): each thing gets a box of its own where there is one,
    and a noun that names nothing of its own ("living" in "living room") none. A word that no phrase covers keeps its
    boxes. A phrase the grounder does not find makes its words untrusted.
    """
    sentence = chunk(caption.text, vocabulary)
    answers = point_apart(sentence, grounder.ground(regions, sentence).phrases)
    nothing = {sentence.tokens[at].start for at in words_without_thing(sentence)}
    words = [
        replace(word, groundable=False, boxes=(), frames=(), score=0.0)
        if word.start in nothing
        else _regrounded(word, answers)
        if word.groundable
        else word
        for word in caption.words
    ]
    return replace(caption, words=tuple(words))


def _regrounded(word: GroundedWord, phrases: Sequence[GroundedPhrase]) -> GroundedWord:
    for phrase in phrases:
        if phrase.start is not None and phrase.end is not None and phrase.start <= word.start < phrase.end:
            return replace(
                word,
                boxes=phrase.boxes,
                frames=phrase.frames,
                score=phrase.score,
                trusted=word.trusted and phrase.found,
            )
    return word
