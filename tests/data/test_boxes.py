"""Boxes survive changes of size, and what is wrong with a box is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.data.boxes import scale_box, usable_box
from deixis.data.dataset import Problems

sizes = st.tuples(st.integers(1, 5000), st.integers(1, 5000))


@st.composite
def boxed(draw: st.DrawFn) -> tuple[tuple[int, int], tuple[float, float, float, float]]:
    width, height = draw(sizes)
    x1, y1 = draw(st.floats(0, width * 0.99)), draw(st.floats(0, height * 0.99))
    x2 = draw(st.floats(x1 + width * 0.001, width))
    y2 = draw(st.floats(y1 + height * 0.001, height))
    return (width, height), (x1, y1, x2, y2)


@given(boxed(), sizes)
def test_boxes_survive_resize_round_trips(
    given: tuple[tuple[int, int], tuple[float, float, float, float]], other: tuple[int, int]
) -> None:
    size, box = given
    there = scale_box(box, size, other)
    back = scale_box(there, other, size)
    assert back == pytest.approx(box, rel=1e-9, abs=1e-9)
    assert there[0] / other[0] == pytest.approx(box[0] / size[0], rel=1e-9), "the same share of the image"


@given(boxed(), sizes)
def test_a_good_box_is_only_scaled(
    given: tuple[tuple[int, int], tuple[float, float, float, float]], other: tuple[int, int]
) -> None:
    size, box = given
    problems = Problems()
    found = usable_box(box, size, other, problems, "here")
    assert found == pytest.approx(scale_box(box, size, other), rel=1e-9)
    assert found is not None
    assert 0 <= found[0] < found[2] <= other[0] * (1 + 1e-9)
    assert len(problems) == 0


numbers = st.one_of(st.floats(), st.integers(-(10**400), 10**400), st.none(), st.booleans(), st.text(max_size=3))


@given(st.lists(numbers, max_size=6), st.none() | sizes, st.none() | sizes)
def test_anything_gives_a_box_inside_or_a_note(
    value: list[object], annotated: tuple[int, int] | None, size: tuple[int, int] | None
) -> None:
    problems = Problems()
    box = usable_box(value, annotated, size, problems, "here")
    if box is None:
        assert len(problems) == 1
        return
    assert box[0] < box[2]
    assert box[1] < box[3]
    limit = size or annotated
    if limit is not None:
        assert box[0] >= 0
        assert box[1] >= 0
        assert box[2] <= limit[0] * (1 + 1e-9)
        assert box[3] <= limit[1] * (1 + 1e-9)


def test_one_pixel_over_the_border_is_cut_without_a_word() -> None:
    problems = Problems()
    assert usable_box((-1, 0, 101, 50), (100, 50), (100, 50), problems, "here") == (0.0, 0.0, 100.0, 50.0)
    assert len(problems) == 0
