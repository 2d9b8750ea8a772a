"""Words that point apart: compounds, collections, plurals, and two things on one box."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.answering.apart import SHARED, how_many, point_apart, words_without_thing
from deixis.geometry import iou_aligned
from deixis.text.rules.chunker import chunk
from deixis.text.vocabulary import Vocabulary
from deixis.types import Box, GroundedPhrase, Sentence

LEFT, RIGHT, BOTH = (0.0, 0.0, 40.0, 80.0), (60.0, 0.0, 100.0, 80.0), (0.0, 0.0, 100.0, 80.0)
NEARLY_LEFT = (0.0, 0.0, 41.0, 80.0)


@pytest.fixture(scope="module")
def words() -> Vocabulary:
    from deixis.answering.load import load

    return load("lite").words


def answer(text: str, score: float, *ranked: tuple[Box, float]) -> GroundedPhrase:
    boxes, shares = tuple(box for box, _ in ranked), tuple(share for _, share in ranked)
    return GroundedPhrase(text, boxes[:1], (0,), score, ranked=boxes, ranked_scores=shares)


def texts(sentence: Sentence, tokens: set[int]) -> set[str]:
    return {sentence.tokens[at].text for at in tokens}


@pytest.mark.parametrize(
    ("caption", "no_things"),
    [
        ("a living room with a couch", {"living"}),
        ("a baseball player swings a bat", {"baseball"}),
        ("a close up of a cat", {"close"}),
        ("a group of people", {"group"}),
        ("a double decker bus", {"decker"}),
        ("a man's hat on a table", set()),
        ("a dog and a cat", set()),
    ],
)
def test_words_that_name_nothing_of_their_own(caption: str, no_things: set[str], words: Vocabulary) -> None:
    sentence = chunk(caption, words)
    found = texts(sentence, words_without_thing(sentence))
    assert no_things <= found
    assert not found & {"room", "couch", "player", "bat", "cat", "man", "hat", "table", "dog", "people", "bus"}


def test_a_group_is_what_it_is_a_group_of(words: Vocabulary) -> None:
    sentence = chunk("a group of people near a bus", words)
    people = answer("a group of people", 0.8, (LEFT, 0.5), (RIGHT, 0.4))
    group, bus = point_apart(sentence, [people, answer("a bus", 0.7, (BOTH, 0.8))])
    assert group.boxes == (LEFT, RIGHT)
    assert bus.boxes == (BOTH,)


@pytest.mark.parametrize(
    ("caption", "count"),
    [
        ("two dogs run", 2),
        ("dogs run", 6),
        ("a dog runs", 1),
        ("people walk", 6),
        ("three small boats", 3),
        ("a couple of men", 2),
    ],
)
def test_how_many_boxes(caption: str, count: int, words: Vocabulary) -> None:
    sentence = chunk(caption, words)
    assert how_many(sentence, sentence.phrases[0]) == count


def test_two_dogs_are_two_boxes_and_not_three(words: Vocabulary) -> None:
    third = (45.0, 0.0, 55.0, 20.0)
    (dogs,) = point_apart(chunk("two dogs", words), [answer("two dogs", 0.9, (LEFT, 0.4), (RIGHT, 0.35), (third, 0.3))])
    assert dogs.boxes == (LEFT, RIGHT)


def test_another_dog_is_another_box(words: Vocabulary) -> None:
    sentence = chunk("a black dog and a brown dog", words)
    sure = answer("a black dog", 0.8, (LEFT, 0.6), (RIGHT, 0.3))
    unsure = answer("a brown dog", 0.6, (NEARLY_LEFT, 0.5), (RIGHT, 0.45))
    first, second = point_apart(sentence, [sure, unsure])
    assert first == sure
    assert second.boxes == (RIGHT,)
    assert second.ranked == (RIGHT, NEARLY_LEFT)
    assert second.score == pytest.approx(0.6 * 0.45 / 0.5)
    assert second.found


def test_without_another_place_the_lesser_is_doubted(words: Vocabulary) -> None:
    sentence = chunk("a woman on a motorcycle", words)
    woman, motorcycle = answer("a woman", 0.4, (LEFT, 0.9), (RIGHT, 0.01)), answer("a motorcycle", 0.7, (LEFT, 0.9))
    first, second = point_apart(sentence, [woman, motorcycle])
    assert not first.found
    assert first.boxes == (LEFT,)
    assert second == motorcycle


def test_a_phrase_that_is_not_there_takes_no_place(words: Vocabulary) -> None:
    sentence = chunk("a dog and a ball", words)
    absent = replace(answer("a ball", 0.9, (LEFT, 0.5)), found=False)
    dog = answer("a dog", 0.5, (LEFT, 0.5))
    assert point_apart(sentence, [dog, absent]) == [dog, absent]


def test_answers_must_belong_to_the_sentence(words: Vocabulary) -> None:
    with pytest.raises(ValueError, match="1 answers for 2"):
        point_apart(chunk("a dog and a ball", words), [answer("a dog", 0.5, (LEFT, 0.5))])


corner = st.floats(0, 50)
side = st.floats(5, 50)
box = st.builds(lambda x, y, w, h: (x, y, x + w, y + h), corner, corner, side, side)


@given(
    ranked=st.lists(st.lists(st.tuples(box, st.floats(0.01, 1)), min_size=1, max_size=4), min_size=2, max_size=2),
    scores=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_no_two_found_things_share_a_box(
    ranked: list[list[tuple[Box, float]]], scores: tuple[float, float], words: Vocabulary
) -> None:
    sentence = chunk("a dog and a ball", words)
    rows = [sorted(one, key=lambda pair: -pair[1]) for one in ranked]
    given_answers = [answer("x", score, *row) for score, row in zip(scores, rows, strict=True)]
    one, other = point_apart(sentence, given_answers)
    if one.found and other.found:
        assert float(iou_aligned(np.array(one.boxes[0]), np.array(other.boxes[0]))) <= SHARED + 1e-9
