"""Words that point apart: which words of a sentence name a thing, and no two things on one box.

A grounder answers phrase by phrase and does not know that the sentence names several things. Read together, they tell
more: "a living room" is one thing, "a group of people" are people, "two dogs" have two boxes, and "a black dog and a
brown dog" are not the same dog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deixis.answering.several import with_further_boxes
from deixis.geometry import iou
from deixis.text.parsed import NOUN_TAGS
from deixis.types import Box, GroundedPhrase, Phrase, Sentence

SHARED = 0.8
"""Overlap from which on two phrases point at one box."""
ELSEWHERE = 0.5
"""A box that overlaps one that is taken by less shows something else."""
NEARLY = 0.2
"""A phrase moves to another box only if that one has this share of its best box's score."""
MANY = 6
"""Boxes that a plural without a number may have."""

NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
PAIRS = frozenset(["pair", "couple", "both"])
NO_THING = frozenset(["close", "closeup", "close-up"])
PLURAL_TAGS = frozenset(["NNS", "NNPS"])
PLURAL_WORDS = frozenset(["people", "sheep", "cattle"])


def head_of(phrase: Phrase) -> int:
    """The head token of a phrase, its last one where nobody has said."""
    return phrase.last - 1 if phrase.head is None else phrase.head


def thing_word(sentence: Sentence, phrase: Phrase) -> int | None:
    """The token that names the thing of a phrase; None where the phrase names none ("a close up").

    In "a group of people" that is the people; else it is the head. Other nouns of the phrase only say which: the
    "living" of "living room" is no thing of its own.
    """
    head = head_of(phrase)
    inside = range(head + 1, phrase.last)
    if any(sentence.tokens[at].text.lower() == "of" for at in inside):
        head = max((at for at in inside if sentence.tokens[at].tag in NOUN_TAGS), default=head)
    return None if sentence.tokens[head].text.lower() in NO_THING else head


def words_without_thing(sentence: Sentence) -> set[int]:
    """Tokens that are nouns but name nothing of their own: parts of compounds and groups, and "a close up"."""
    found = set()
    for phrase in sentence.phrases:
        inside = range(phrase.first, phrase.last)
        owners = max((at for at in inside if sentence.tokens[at].tag == "POS"), default=phrase.first)
        nouns = {at for at in inside if sentence.tokens[at].tag in NOUN_TAGS and at >= owners}
        found |= (nouns | {head_of(phrase)}) - {thing_word(sentence, phrase)}
    return found


def how_many(sentence: Sentence, phrase: Phrase) -> int:
    """How many boxes a phrase may have: a number it says, several for a plural, else one."""
    said = [token.text.lower() for token in sentence.tokens[phrase.first : phrase.last]]
    number = next((NUMBERS[word] for word in said if word in NUMBERS), None)
    if number is not None:
        return number
    thing = sentence.tokens[thing_word(sentence, phrase) or head_of(phrase)]
    if thing.tag not in PLURAL_TAGS and thing.text.lower() not in PLURAL_WORDS:
        return 1
    return 2 if PAIRS & set(said) else MANY


def point_apart(sentence: Sentence, answers: Sequence[GroundedPhrase]) -> list[GroundedPhrase]:
    """Let the phrases of one sentence point at different boxes, and plurals at several.

    The surest phrase keeps its box. One that would share it moves to its next candidate that shows something else, if
    that answers nearly as well; else it stays where it is and is doubted, for two things are hardly one box.
    """
    if len(answers) != len(sentence.phrases):
        raise ValueError(f"{len(answers)} answers for {len(sentence.phrases)} phrases")
    settled: dict[int, GroundedPhrase] = {}
    taken: list[Box] = []
    for at in sorted(range(len(answers)), key=lambda at: (-answers[at].score, at)):
        answer = answers[at]
        if answer.found and answer.boxes and len(set(answer.frames)) <= 1:  # a phrase of a clip has a box a frame
            if _overlaps(answer.boxes[0], taken, SHARED):
                answer = _elsewhere(answer, taken)
            answer = with_further_boxes(answer, how_many(sentence, sentence.phrases[at]))
            taken += answer.boxes if answer.found else ()
        settled[at] = answer
    return [settled[at] for at in range(len(answers))]


def _elsewhere(answer: GroundedPhrase, taken: Sequence[Box]) -> GroundedPhrase:
    """The phrase at its best candidate that shows nothing which is taken, or doubted where it is."""
    candidates = list(zip(answer.ranked, answer.ranked_scores, strict=True))
    for candidate in candidates:
        box, share = candidate
        if share >= NEARLY * candidates[0][1] and not _overlaps(box, taken, ELSEWHERE):
            ranked = [candidate, *(other for other in candidates if other is not candidate)]
            return replace(
                answer,
                boxes=(box,),
                frames=answer.frames[:1],
                score=answer.score * share / max(candidates[0][1], share, 1e-9),
                ranked=tuple(box for box, _ in ranked),
                ranked_scores=tuple(share for _, share in ranked),
            )
    return replace(answer, found=False)


def _overlaps(box: Box, taken: Sequence[Box], least: float) -> bool:
    return bool(taken) and bool((iou(np.array([box]), np.array(taken)) > least).any())
