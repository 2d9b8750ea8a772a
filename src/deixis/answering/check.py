"""Is what a caption names really there? A grounder is asked about each thing.

A captioner says what usually goes together: a ball where a dog jumps. The grounder looks for each thing by itself, so
its doubt is worth showing.
"""

from __future__ import annotations

from dataclasses import replace

from deixis.grounding.presence import Presence, match_words
from deixis.interfaces import Grounder
from deixis.text.rules.chunker import chunk
from deixis.text.vocabulary import Vocabulary
from deixis.types import GroundedCaption, GroundedPhrase, Regions

HALF = 0.5
"""Below it a word is doubted, where no threshold was fitted or given."""


def check(
    caption: GroundedCaption,
    regions: Regions,
    grounder: Grounder,
    vocabulary: Vocabulary,
    presence: Presence | None = None,
    threshold: float | None = None,
) -> GroundedCaption:
    """Mark things that the grounder doubts as untrusted, and give every groundable word its probability.

    With ``presence`` (fitted: ``deixis bundle --calibrate``) the probability is that of the word being in the photo.
    Without, it is what the grounder says of the word's noun phrase; below a half, or where it says that the phrase is
    not there, the word is doubted. ``threshold`` takes the place of the fitted one, or of the half. Words it does not
    know stay as they are.
    """
    if presence is None:
        return _by_phrase(caption, regions, grounder, vocabulary, HALF if threshold is None else threshold)
    least = presence.threshold if threshold is None else threshold
    asked = [at for at, word in enumerate(caption.words) if word.groundable]
    scores = match_words(grounder, vocabulary, regions, [caption.words[at].text.lower() for at in asked])
    words = list(caption.words)
    for at, score in zip(asked, scores, strict=True):
        if score is not None:
            sure = presence(score)
            words[at] = replace(words[at], presence=sure, trusted=words[at].trusted and sure >= least)
    return replace(caption, words=tuple(words))


def _by_phrase(
    caption: GroundedCaption, regions: Regions, grounder: Grounder, vocabulary: Vocabulary, least: float
) -> GroundedCaption:
    answers = list(grounder.ground(regions, chunk(caption.text, vocabulary)).phrases)
    words = []
    for word in caption.words:
        if word.groundable:
            answer = _phrase_of(word.start, answers)
            if answer is None:  # "playing soccer" read as a verb: ask about the word by itself
                answer = next(iter(grounder.ground(regions, chunk(word.text, vocabulary)).phrases), None)
            if answer is not None:
                sure = answer.found and answer.score >= least
                word = replace(word, presence=answer.score, trusted=word.trusted and sure)
        words.append(word)
    return replace(caption, words=tuple(words))


def _phrase_of(place: int, phrases: list[GroundedPhrase]) -> GroundedPhrase | None:
    for phrase in phrases:
        if phrase.start is not None and phrase.end is not None and phrase.start <= place < phrase.end:
            return phrase
    return None
