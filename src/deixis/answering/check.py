"""Is what a caption names really there? A grounder is asked about each thing.

A captioner says what usually goes together: a ball where a dog jumps. The grounder looks for each thing by itself, so
its doubt is worth showing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deixis.answering.reground import Points, Seen
from deixis.grounding.logistic import Presence
from deixis.text.rules.chunker import chunk
from deixis.text.vocabulary import Vocabulary
from deixis.types import GroundedCaption, GroundedPhrase

if TYPE_CHECKING:
    from deixis.interfaces import Grounder
    from deixis.types import Regions

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
        return check_phrases(caption, regions, grounder, vocabulary, threshold)
    from deixis.grounding.presence import probabilities  # it needs torch, and what stands below does not

    sure = probabilities(grounder, vocabulary, regions, things_named(caption), presence)
    return check_words(caption, sure, presence.threshold if threshold is None else threshold)


def things_named(caption: GroundedCaption) -> list[str]:
    """Return the words of a caption that name things, in lower case."""
    return [word.text.lower() for word in caption.words if word.groundable]


def check_words(caption: GroundedCaption, probabilities: Sequence[float | None], least: float) -> GroundedCaption:
    """Give the things of a caption (:func:`things_named`) their probability, and doubt those that have ``least`` not.

    None, of a word that the grounder does not know, leaves the word as it is.
    """
    words = list(caption.words)
    asked = [at for at, word in enumerate(words) if word.groundable]
    for at, sure in zip(asked, probabilities, strict=True):
        if sure is not None:
            words[at] = replace(words[at], presence=sure, trusted=words[at].trusted and sure >= least)
    return replace(caption, words=tuple(words))


def check_phrases(
    caption: GroundedCaption,
    regions: Seen,
    grounder: Points[Seen],
    vocabulary: Vocabulary,
    threshold: float | None = None,
) -> GroundedCaption:
    """Ask about each word's noun phrase, where no curve of presence was fitted."""
    least = HALF if threshold is None else threshold
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
