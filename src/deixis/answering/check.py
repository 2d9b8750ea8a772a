"""Is what a caption names really there? A grounder is asked about each thing.

A captioner says what usually goes together: a ball where a dog jumps. The grounder looks for each thing by itself, so
its doubt is worth showing. The number is its probability for the noun phrase that the word belongs to.
"""

from __future__ import annotations

from dataclasses import replace

from deixis.interfaces import Grounder
from deixis.text.chunker import chunk
from deixis.text.vocabulary import Vocabulary
from deixis.types import GroundedCaption, GroundedPhrase, Regions


def check(caption: GroundedCaption, regions: Regions, grounder: Grounder, vocabulary: Vocabulary) -> GroundedCaption:
    """Mark words that the grounder doubts as untrusted, and give every groundable word its probability.

    A groundable word outside every noun phrase ("playing soccer" read as a verb) is asked about by itself.
    """
    answers = list(grounder.ground(regions, chunk(caption.text, vocabulary)).phrases)
    words = []
    for word in caption.words:
        if word.groundable:
            answer = _phrase_of(word.start, answers)
            if answer is None:
                answer = next(iter(grounder.ground(regions, chunk(word.text, vocabulary)).phrases), None)
            if answer is not None:
                word = replace(word, presence=answer.score, trusted=word.trusted and answer.found)
        words.append(word)
    return replace(caption, words=tuple(words))


def _phrase_of(place: int, phrases: list[GroundedPhrase]) -> GroundedPhrase | None:
    for phrase in phrases:
        if phrase.start is not None and phrase.end is not None and phrase.start <= place < phrase.end:
            return phrase
    return None
