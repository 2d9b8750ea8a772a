from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deixis.grounding.reir.forward_pass import Level
from deixis.grounding.reir.refinement import Neighbourhood, move, self_taught_losses, self_taught_targets

RELEASED = Neighbourhood(gap=0.1, anchor=False)
TOP = [10.0, 10.0, 20.0, 20.0]
BOXES = [
    TOP,
    [10.0, 10.0, 20.0, 18.0],  # IoU .8
    [10.0, 10.0, 20.0, 16.0],  # IoU .6 exactly
    [10.0, 10.0, 20.0, 15.0],  # IoU .5
    TOP,  # the same box again
    [10.0, 10.0, 20.0, 19.0],  # IoU .9, but liked nearly as much
    [10.0, 10.0, 20.0, 19.0],  # padding
]
WEIGHTS = [0.30, 0.125, 0.125, 0.125, 0.125, 0.21, 0.0]


def level(offsets: torch.Tensor | None = None) -> Level:
    mask = torch.tensor([[True] * 6 + [False]])
    weights = torch.tensor([WEIGHTS])
    return Level(mask, torch.tensor([BOXES]), weights, weights, torch.zeros(1, 2), offsets)


def test_only_near_and_clearly_less_liked_proposals_are_taught() -> None:
    _, taught = self_taught_targets(level(), RELEASED)
    assert taught.tolist() == [[False, True, True, False, False, False, False]]
    _, taught = self_taught_targets(level(), Neighbourhood(anchor=False))
    assert taught.tolist() == [[False, True, True, False, False, True, False]]
    _, taught = self_taught_targets(level(), Neighbourhood(overlap=0.5, gap=0.05, anchor=False))
    assert taught.tolist() == [[False, True, True, True, False, True, False]]


def test_the_best_proposal_is_taught_to_stay() -> None:
    targets, taught = self_taught_targets(level(), Neighbourhood())  # equation 15: whoever overlaps by more than tau
    assert taught.tolist() == [[True, True, True, False, True, True, False]]
    assert targets[0, 0].tolist() == targets[0, 4].tolist() == [0.0, 0.0, 0.0, 0.0]
    offsets = torch.full((1, 7, 4), 3.0, requires_grad=True)
    (gradient,) = torch.autograd.grad(self_taught_losses(level(offsets), Neighbourhood()).sum(), offsets)
    assert (gradient[0, 0] > 0).all()  # back to where it is
    (gradient,) = torch.autograd.grad(self_taught_losses(level(offsets), RELEASED).sum(), offsets)
    assert not gradient[0, 0].any()


def test_targets_are_weighted_offsets_to_the_best_proposal() -> None:
    targets, _ = self_taught_targets(level(), RELEASED)
    # from centre (15, 14), 10 x 8 to centre (15, 15), 10 x 10
    torch.testing.assert_close(targets[0, 1], torch.tensor([0.0, 10 * 1 / 8, 0.0, 5 * math.log(10 / 8)]))
    # from centre (15, 13), 10 x 6
    torch.testing.assert_close(targets[0, 2], torch.tensor([0.0, 10 * 2 / 6, 0.0, 5 * math.log(10 / 6)]))


def test_the_loss_is_smooth_l1_over_the_taught_ones() -> None:
    offsets = torch.zeros(1, 7, 4, requires_grad=True)

    def smooth(x: float) -> float:
        return 0.5 * x * x if abs(x) < 1 else abs(x) - 0.5

    losses = self_taught_losses(level(offsets), RELEASED)
    first = smooth(10 / 8) + smooth(5 * math.log(10 / 8))
    second = smooth(20 / 6) + smooth(5 * math.log(10 / 6))
    assert losses.tolist() == pytest.approx([(first + second) / 2], rel=1e-5)
    (gradient,) = torch.autograd.grad(losses.sum(), offsets)
    assert gradient.abs().sum(-1).bool().tolist() == [[False, True, True, False, False, False, False]]


def test_a_phrase_that_likes_all_alike_teaches_nobody() -> None:
    even = Level(
        torch.ones(1, 3, dtype=torch.bool),
        torch.tensor([BOXES[:3]]),
        torch.zeros(1, 3),
        torch.full((1, 3), 1 / 3),
        torch.zeros(1, 2),
        torch.ones(1, 3, 4),
    )
    assert self_taught_losses(even, RELEASED).tolist() == [0.0]


side = st.floats(5, 40)
corner = st.floats(0, 50)


@given(st.tuples(corner, corner, side, side), st.tuples(corner, corner, side, side))
def test_learned_targets_move_a_box_onto_the_best_one(a: tuple[float, ...], b: tuple[float, ...]) -> None:
    boxes = torch.tensor([[[x, y, x + w, y + h] for x, y, w, h in (a, b)]], dtype=torch.float64)
    weights = torch.tensor([[0.9, 0.1]], dtype=torch.float64)
    mask = torch.ones(1, 2, dtype=torch.bool)
    targets, _ = self_taught_targets(Level(mask, boxes, weights, weights, weights), RELEASED)
    moved = move(boxes, targets, torch.tensor([[100.0, 100.0]], dtype=torch.float64))
    torch.testing.assert_close(moved[0, 1], boxes[0, 0], atol=1e-6, rtol=1e-6)


def test_moved_boxes_stay_inside_the_image() -> None:
    moved = move(torch.tensor([[TOP]]), torch.tensor([[[50.0, 0.0, 0.0, 20.0]]]), torch.tensor([[40.0, 30.0]]))
    assert moved.tolist() == [[[40.0, 0.0, 40.0, 30.0]]]


def test_a_wrong_neighbourhood_is_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        Neighbourhood(overlap=1.2)
