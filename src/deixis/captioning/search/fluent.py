"""The search that photos are captioned with, and what it keeps from being said."""

from __future__ import annotations

from deixis.captioning.search.strategy import Strategy
from deixis.text.vocabulary import Vocabulary

BAD_ENDING_TAGS = frozenset(["DT", "PRP$", "CC", "TO", "WDT", "WP"])
BAD_ENDINGS = frozenset(
    ["as", "at", "be", "for", "from", "in", "into", "is", "are", "near", "of", "than", "that", "with"]
)
JOINING = frozenset(["and", "or", "&"])
LENGTH_POWER = 1.3
"""Exponent of the length by which beams are ranked where somebody else has the last word.

Sums of log-probabilities fill a beam with short captions, among which there is little to choose.
"""


def fluent_search(vocabulary: Vocabulary, beam: int, *, chosen: bool = False) -> Strategy:
    """Return the search for captions that read well; a beam of 1 is greedy.

    ``chosen``: whether a :class:`~deixis.answering.choosing.Chooser` ranks what is found; otherwise the search does.
    """
    return Strategy(
        "greedy" if beam == 1 else "beam",
        width=beam,
        length_power=LENGTH_POWER if chosen else 0.0,
        block_trigrams=True,
        bad_endings=bad_endings(vocabulary),
        joining=joining_words(vocabulary),
        once=tuple(at for at, thing in enumerate(vocabulary.is_groundable) if thing),
    )


def bad_endings(vocabulary: Vocabulary) -> tuple[int, ...]:
    """Ids of words no caption should end with: articles, possessives, conjunctions, common prepositions, "is"."""
    return tuple(
        vocabulary.id(entry.word)
        for entry in vocabulary.entries
        if entry.word in BAD_ENDINGS or entry.tag in BAD_ENDING_TAGS
    )


def joining_words(vocabulary: Vocabulary) -> tuple[int, ...]:
    """Ids of the words that join two different things: "and", "or"."""
    return tuple(vocabulary.id(word) for word in sorted(JOINING) if word in vocabulary)
