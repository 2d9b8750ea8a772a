"""Following one thing through frames: against every path, and by hand."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.answering.tracks import Candidates, averaged, best_path, follow
from deixis.types import Box

LEFT, RIGHT = (0.0, 0.0, 10.0, 10.0), (50.0, 0.0, 60.0, 10.0)


def overlap(a: Box, b: Box) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(wide, 0) * max(high, 0)
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


corner = st.integers(0, 6).map(float)
box = st.builds(lambda x, y, w, h: (x, y, x + w + 1, y + h + 1), corner, corner, corner, corner)
weight = st.floats(0.01, 1)
frame = st.lists(st.tuples(box, weight), min_size=1, max_size=3).map(
    lambda pairs: Candidates(tuple(b for b, _ in pairs), tuple(w for _, w in pairs))
)


@settings(max_examples=100)
@given(st.lists(frame, min_size=1, max_size=4), st.floats(0, 4))
def test_no_path_is_better(frames: list[Candidates], steadiness: float) -> None:
    def value(path: tuple[int, ...]) -> float:
        likely = sum(math.log(f.weights[at] / max(f.weights)) for f, at in zip(frames, path, strict=True))
        steps = itertools.pairwise(zip(frames, path, strict=True))
        return likely + steadiness * sum(overlap(a.boxes[i], b.boxes[j]) for (a, i), (b, j) in steps)

    every = itertools.product(*(range(len(one.boxes)) for one in frames))
    assert value(tuple(best_path(frames, steadiness))) == pytest.approx(max(value(path) for path in every))


def test_one_frame_in_doubt_follows_its_neighbours() -> None:
    sure, torn = Candidates((LEFT, RIGHT), (0.6, 0.1)), Candidates((RIGHT, LEFT), (0.4, 0.3))
    assert [step and step[0] for step in follow([sure, torn, sure])] == [LEFT, LEFT, LEFT]
    assert [step and step[0] for step in follow([sure, torn, sure], smooth=False)] == [LEFT, RIGHT, LEFT]
    moved = Candidates((RIGHT, LEFT), (0.6, 0.001))
    sure = Candidates((LEFT, RIGHT), (0.6, 0.001))
    assert [step and step[0] for step in follow([sure, moved, moved])] == [LEFT, RIGHT, RIGHT], "things do move"


def test_frames_without_the_thing_part_its_track() -> None:
    sure, torn = Candidates((LEFT, RIGHT), (0.6, 0.1)), Candidates((RIGHT, LEFT), (0.4, 0.3))
    found = follow([sure, None, torn, None])
    assert found == [(LEFT, 0.6), None, (RIGHT, 0.4), None]


def test_averaging_calms_what_trembles_and_leaves_even_movement() -> None:
    even = [(float(x), 0.0, x + 20.0, 10.0) for x in range(5)]
    assert averaged(even) == even
    trembling = [(0.0, 0.0, 20.0, 10.0), (2.0, 0.0, 22.0, 10.0), (0.0, 0.0, 20.0, 10.0)]
    assert averaged(trembling) == [trembling[0], (1.0, 0.0, 21.0, 10.0), trembling[2]]
    assert averaged([LEFT, RIGHT, LEFT]) == [LEFT, RIGHT, LEFT], "boxes apart are not mixed"


def test_weights_of_nothing_are_no_trouble() -> None:
    nothing = Candidates((LEFT, RIGHT), (0.0, 0.0))
    assert best_path([nothing, nothing]) == [0, 0]
