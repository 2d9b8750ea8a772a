"""When a thing is on the frames of a clip: against every possible answer, and by hand."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.answering.there import steadily_there, steady
from deixis.grounding.logistic import Presence

FITTED = Presence(slope=1.0, offset=0.0, threshold=0.4)


@settings(max_examples=200)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=7), st.floats(0, 3))
def test_no_other_answer_is_better(evidence: list[float], change: float) -> None:
    def value(there: tuple[bool, ...]) -> float:
        changes = sum(a != b for a, b in itertools.pairwise(there))
        return sum(one for one, here in zip(evidence, there, strict=True) if here) - change * changes

    best = max(value(there) for there in itertools.product([False, True], repeat=len(evidence)))
    assert value(tuple(steady(evidence, change))) == pytest.approx(best)


def test_a_trembling_probability_does_not_flicker() -> None:
    trembling = [0.8, 0.39, 0.7, 0.38, 0.9]
    cut = [value >= 0.4 for value in trembling]
    assert cut == [True, False, True, False, True]
    assert steadily_there(cut, trembling, FITTED) == [True] * 5
    assert steadily_there([False] * 5, [0.1, 0.1, 0.42, 0.1, 0.1], FITTED) == [False] * 5


def test_what_comes_and_goes_plainly_does() -> None:
    assert steadily_there([], [0.9, 0.9, 0.02, 0.02, 0.95], FITTED) == [True, True, False, False, True]
    assert steadily_there([], [0.9, 0.02, 0.9], FITTED) == [True, False, True], "one frame, but a sure one"


def test_a_threshold_takes_the_place_of_the_fitted_one() -> None:
    assert steadily_there([], [0.6, 0.6], FITTED, threshold=0.9) == [False, False]
    assert steadily_there([], [0.1, 0.1], FITTED, threshold=0.01) == [True, True]
    assert steadily_there([], [0.1, 0.6], FITTED, threshold=0.0) == [True, True]


def test_without_fitted_probabilities_each_frame_speaks_for_itself() -> None:
    said = [True, False, True]
    assert steadily_there(said, [0.9, 0.39, 0.9], None) == said
    assert steadily_there(said, [0.9, None, 0.9], FITTED) == said
    assert steady([]) == []
