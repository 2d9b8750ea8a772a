from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from deixis import geometry

sides = st.integers(1, 60)
corners = st.integers(0, 60)
box = st.builds(lambda x, y, w, h: [float(x), float(y), float(x + w), float(y + h)], corners, corners, sides, sides)
boxes = st.lists(box, min_size=1, max_size=6).map(lambda rows: torch.tensor(rows, dtype=torch.float64))
size = st.tuples(st.integers(1, 4000), st.integers(1, 4000))


def cells(one: list[float], plus_one: bool) -> set[tuple[int, int]]:
    """The pixels of a box with whole coordinates: an independent way to measure areas."""
    extra = 1 if plus_one else 0
    x1, y1, x2, y2 = (int(value) for value in one)
    return {(x, y) for x in range(x1, x2 + extra) for y in range(y1, y2 + extra)}


@given(box, box, st.booleans())
def test_iou_counts_pixels(a: list[float], b: list[float], plus_one: bool) -> None:
    first, second = cells(a, plus_one), cells(b, plus_one)
    expected = len(first & second) / len(first | second)
    got = geometry.iou(torch.tensor([a]), torch.tensor([b]), plus_one=plus_one)
    assert got.item() == pytest.approx(expected, rel=1e-5)


@given(boxes, boxes)
def test_iou_is_symmetric_and_torch_equals_numpy(a: Tensor, b: Tensor) -> None:
    overlap = geometry.iou(a, b)
    assert torch.equal(overlap, geometry.iou(b, a).T)
    np.testing.assert_allclose(overlap.numpy(), geometry.iou(a.numpy(), b.numpy()))
    assert torch.allclose(geometry.iou(a, a).diagonal(), torch.ones(len(a), dtype=a.dtype))


def test_the_plus_one_rule_makes_touching_boxes_overlap() -> None:
    a, b = torch.tensor([[0.0, 0.0, 9.0, 9.0]]), torch.tensor([[9.0, 0.0, 18.0, 9.0]])
    assert geometry.iou(a, b).item() == 0
    assert geometry.iou(a, b, plus_one=True).item() == pytest.approx(10 / 190)


@given(boxes)
def test_union_contains_every_box_and_touches_its_sides(rows: Tensor) -> None:
    union = geometry.union_box(rows)
    assert bool((geometry.inside_share(rows, union[None]) > 1 - 1e-9).all())
    assert union.tolist() == [rows[:, 0].min(), rows[:, 1].min(), rows[:, 2].max(), rows[:, 3].max()]
    np.testing.assert_array_equal(union.numpy(), geometry.union_box(rows.numpy()))


def test_union_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no boxes"):
        geometry.union_box(torch.zeros(0, 4))


@given(st.lists(st.tuples(box, box), min_size=1, max_size=5))
def test_deltas_round_trip(pairs: list[tuple[list[float], list[float]]]) -> None:
    start = torch.tensor([a for a, _ in pairs], dtype=torch.float64)
    goal = torch.tensor([b for _, b in pairs], dtype=torch.float64)
    weights = (10.0, 10.0, 5.0, 5.0)
    deltas = geometry.encode_deltas(start, goal, weights)
    torch.testing.assert_close(geometry.decode_deltas(start, deltas, weights), goal, rtol=0, atol=1e-6)
    as_array = geometry.decode_deltas(start.numpy(), geometry.encode_deltas(start.numpy(), goal.numpy()))
    np.testing.assert_allclose(as_array, goal.numpy(), atol=1e-6)


def test_deltas_by_hand() -> None:
    start, goal = torch.tensor([[0.0, 0.0, 10.0, 20.0]]), torch.tensor([[5.0, 10.0, 25.0, 30.0]])
    # centres (5, 10) -> (15, 20); sizes (10, 20) -> (20, 20)
    expected = torch.tensor([[1.0, 0.5, float(np.log(2)), 0.0]])
    torch.testing.assert_close(geometry.encode_deltas(start, goal), expected)


def test_wild_deltas_stay_finite() -> None:
    moved = geometry.decode_deltas(torch.tensor([[0.0, 0.0, 10.0, 10.0]]), torch.tensor([[0.0, 0.0, 900.0, 900.0]]))
    assert bool(torch.isfinite(moved).all())


@given(boxes, size, size)
def test_scaling_there_and_back(rows: Tensor, old: tuple[int, int], new: tuple[int, int]) -> None:
    there = geometry.scale(rows, old, new)
    torch.testing.assert_close(geometry.scale(there, new, old), rows)
    np.testing.assert_allclose(there.numpy(), geometry.scale(rows.numpy(), old, new))


@given(boxes, size)
def test_clipped_boxes_lie_inside(rows: Tensor, limit: tuple[int, int]) -> None:
    cut = geometry.clip_to(rows, limit)
    assert cut.min() >= 0
    assert cut[:, 0::2].max() <= limit[0]
    assert cut[:, 1::2].max() <= limit[1]
    np.testing.assert_array_equal(cut.numpy(), geometry.clip_to(rows.numpy(), limit))


@given(boxes, st.data())
def test_nms_keeps_the_best_and_nothing_that_overlaps_a_better_one(rows: Tensor, data: st.DataObject) -> None:
    scores = torch.tensor(data.draw(st.lists(st.floats(0, 1), min_size=len(rows), max_size=len(rows))))
    kept = geometry.nms(rows, scores, 0.5).tolist()
    overlap = geometry.iou(rows, rows)
    assert kept[0] == int(torch.argsort(scores, descending=True, stable=True)[0])
    for at, one in enumerate(kept):
        assert all(overlap[one, other] <= 0.5 for other in kept[:at])
    for lost in set(range(len(rows))) - set(kept):
        assert any(overlap[lost, one] > 0.5 and scores[one] >= scores[lost] for one in kept)


def test_nms_of_nothing_is_nothing() -> None:
    assert geometry.nms(torch.zeros(0, 4), torch.zeros(0), 0.5).tolist() == []
