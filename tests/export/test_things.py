"""What has a box, what it is called, and in which order people should look at it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.errors import BadFileError
from deixis.export.review import doubt, in_review_order
from deixis.export.things import Answer, inside, label_of, labels_in, read_answers, text_of, things_of
from deixis.types import GroundedCaption, GroundedPhrases, GroundedWord
from tests.export.answers import CLIP, DOG, PHRASES, caption, captions


@pytest.mark.parametrize(
    ("phrase", "label"),
    [
        ("Dogs", "dog"),
        ("two red hats", "hat"),
        ("a man in a hat", "man"),
        ("smiling women", "woman"),
        ("his left hand", "hand"),
        ("a group of people", "people"),
        ("A large group of young men in hats", "man"),
        ("a pair of sunglasses", "sunglasses"),
        ("a couple of dogs", "dog"),
        ("a lot of pairs of shoes", "shoe"),
        ("a piece of cake", "cake"),
        ("a group", "group"),
        ("a group of", "group"),
        ("a cup of coffee", "cup"),
        ("🐶", "🐶"),
        ("", "thing"),
    ],
)
def test_labels_are_head_nouns_in_the_singular(phrase: str, label: str) -> None:
    assert label_of(phrase) == label


def test_things_of_a_caption_and_of_phrases() -> None:
    dogs, ball = things_of(DOG)
    assert (dogs.text, dogs.label, dogs.box, dogs.span) == ("dogs", "dog", (20, 10, 120, 90), (4, 8))
    assert (ball.number, ball.score, ball.trusted) == (4, 0.5, True)
    assert [thing.text for thing in things_of(PHRASES)] == ["a red hat"]
    hat, ghost = things_of(PHRASES, doubtful=True)
    assert (hat.trusted, ghost.trusted) == (True, False)
    assert text_of(PHRASES)[slice(*ghost.span)] == "a ghost"  # type: ignore[index, misc]
    assert labels_in([DOG, PHRASES]) == ["ball", "dog", "hat"]


def test_a_group_of_people_is_one_thing_called_people() -> None:
    both = (20.0, 10.0, 120.0, 90.0)
    told = caption("a.jpg", "a group of young people near a car", dict.fromkeys(["group", "people"], both))
    (thing,) = things_of(told)
    assert (thing.text, thing.label, thing.span) == ("group of young people", "people", (2, 23))
    assert labels_in([told]) == ["people"]
    # Whether they are there is what is known of the people, not of the group.
    words = tuple(replace(word, presence=0.1, trusted=False) if word.text == "people" else word for word in told.words)
    assert things_of(replace(told, words=words)) == []
    (doubted,) = things_of(replace(told, words=words), doubtful=True)
    assert doubted.score == 0.1
    # Boxes of their own, as attention may give: two things, of one class.
    apart = caption("a.jpg", "a group of people", {"group": both, "people": (0.0, 0.0, 9.0, 9.0)})
    assert [(thing.text, thing.label) for thing in things_of(apart)] == [
        ("group of people", "people"),
        ("people", "people"),
    ]
    # Nothing that is counted: the group itself.
    assert labels_in([caption("a.jpg", "a group of them", {"group": both})]) == ["group"]


@settings(max_examples=30)
@given(captions())
def test_boxes_never_leave_the_image(answer: GroundedCaption) -> None:
    width, height = answer.size
    for thing in things_of(answer, doubtful=True):
        x1, y1, x2, y2 = thing.box
        assert 0 <= x1 <= x2 <= width
        assert 0 <= y1 <= y2 <= height


def test_a_checked_word_is_as_sure_as_its_presence() -> None:
    word = GroundedWord("dog", 0, 3, ((0, 0, 1, 1),), (0,), 0.9, True, True, 0.25)
    answer = GroundedCaption("x", (9, 9), "dog", (word,))
    assert things_of(answer)[0].score == 0.25
    assert doubt(answer) == 0.75


def test_the_most_doubtful_come_first() -> None:
    nothing = GroundedPhrases("z", (9, 9), ())
    assert doubt(DOG) == 0.5
    assert doubt(PHRASES) == 1.0, "a phrase that was not found needs a look"
    assert doubt(nothing) == 0.0
    assert in_review_order([nothing, DOG, PHRASES]) == [PHRASES, DOG, nothing]


def test_reading_lines_lists_and_single_objects(tmp_path: Path) -> None:
    answers: list[Answer] = [DOG, PHRASES, CLIP]
    rows = [answer.to_json() for answer in answers]
    for text in (json.dumps(rows), "\n".join(map(json.dumps, rows))):
        (tmp_path / "a.json").write_text(text)
        assert read_answers(tmp_path / "a.json") == answers
    (tmp_path / "one.json").write_text(json.dumps(rows[0], indent=1))
    assert read_answers(tmp_path / "one.json") == [DOG]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"kind": "scores"}', 'line 2: has "kind": "scores".*deixis caption --json'),
        ("[1]", r"line 2: is \[1\]"),
        ('{"deixis": 1, "kind": "caption", "image": "x", "size": [0, 1], "text": "", "words": []}', "line 2.*size"),
        ('{"deixis": 9, "kind": "caption"}', "line 2.*newer version"),
    ],
)
def test_what_is_no_answer_is_named_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(DOG.to_json()) + "\n" + line + "\n")
    with pytest.raises(BadFileError, match=message):
        read_answers(file)


@settings(max_examples=30)
@given(st.tuples(*[st.floats(-1e4, 1e4)] * 4))
def test_cutting_twice_is_cutting_once(box: tuple[float, float, float, float]) -> None:
    once = inside(box, (300, 200))
    assert inside(once, (300, 200)) == once
