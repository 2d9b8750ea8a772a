"""The error types of Distributed Attention 4.5 on sentences worked by hand."""

from __future__ import annotations

import pytest

from deixis.metrics.grounding.error_types import classify_errors
from deixis.metrics.grounding.object_words import GroundedItem, PredictedWord, ReferenceSentence
from deixis.types import Box

TRUTH: Box = (10, 10, 49, 49)  # 40 x 40 pixels
RIGHT: Box = (10, 10, 49, 44)
PART: Box = (10, 10, 24, 24)  # inside, 225 of 1600
LARGE: Box = (0, 0, 99, 99)  # holds it, 1600 of 10000
ASIDE: Box = (40, 40, 79, 79)  # neither
HALF: Box = (10, 10, 49, 29)  # inside, exactly one half


def photo(name: str, box: Box | None, *labels: str, others: tuple[str, ...] = ()) -> GroundedItem:
    reference = ReferenceSentence.of([(1, "man", TRUTH, 0)], others)
    words = [PredictedWord(label, label, (box,)) for label in labels] if box is not None else []
    return GroundedItem(name, (reference,), tuple(words))


def test_five_types_and_three() -> None:
    items = [
        photo("right", RIGHT, "man"),
        photo("part", PART, "man"),
        photo("large", LARGE, "man"),
        photo("aside", ASIDE, "man"),
        photo("half", HALF, "man"),  # not above one half, not below either
        photo("nothing", None),
        photo("dog", RIGHT, "dog"),  # hallucinated, and the man is missed
        photo("ignored", RIGHT, "man", "dog", others=("dog",)),
    ]
    errors = classify_errors(items)
    assert errors.five == {"missed_class": 2, "hallucinated_class": 1, "correct": 2, "partial": 1, "other": 3}
    assert errors.five_shares["missed_class"] == pytest.approx(2 / 9)
    assert sum(errors.five_shares.values()) == pytest.approx(1)
    assert errors.three == {"partial": 1, "enlarged": 1, "deviated": 2}


def test_bound_counts_partial_as_right() -> None:
    items = [photo("right", RIGHT, "man"), photo("part", PART, "man"), photo("aside", ASIDE, "man")]
    errors = classify_errors(items)
    assert errors.bound["F1_all"] == pytest.approx(2 / 3)
    assert errors.bound["precision_loc_per_sent"] == pytest.approx(2 / 3)


def test_each_reference_of_a_photo_is_asked_and_items_left_out_are_not() -> None:
    references = (ReferenceSentence.of([(1, "man", TRUTH, 0)]), ReferenceSentence.of([(1, "hat", TRUTH, 0)]))
    item = GroundedItem("1", references, (PredictedWord("man", "man", (RIGHT,)),))
    left_out = GroundedItem("2", references, None)
    five = classify_errors([item, left_out]).five
    assert five == {"missed_class": 1, "hallucinated_class": 1, "correct": 1, "partial": 0, "other": 0}


def test_a_clip_is_partial_where_the_frame_fits() -> None:
    reference = ReferenceSentence.of([(1, "man", TRUTH, 3)])
    inside_elsewhere = PredictedWord("man", "man", (PART, ASIDE), (2, 3))
    item = GroundedItem("v/0", (reference,), (inside_elsewhere,))
    assert classify_errors([item]).five["other"] == 1
