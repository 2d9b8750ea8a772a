"""Box voting against hand-worked means."""

from __future__ import annotations

import math

import torch

from deixis.grounding.lite.voting import voted_boxes

BOXES = torch.tensor(
    [[[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 12.0], [50.0, 50.0, 60.0, 60.0], [0.0, 0.0, 10.0, 11.0]]]
)


def test_boxes_move_to_the_mean_of_those_around_them() -> None:
    logits = torch.tensor([[0.0, 2 * math.log(3.0), 5.0, -torch.inf]])  # votes 1 to 3 at temperature 2
    moved = voted_boxes(logits, BOXES)[0]
    expected = (1 * 10.0 + 3 * 12.0) / 4
    assert torch.allclose(moved[0], torch.tensor([0.0, 0.0, 10.0, expected]), atol=1e-4)
    assert torch.allclose(moved[1], moved[0])


def test_a_box_alone_stays_where_it_is() -> None:
    moved = voted_boxes(torch.zeros(1, 4), BOXES)[0]
    assert torch.allclose(moved[2], BOXES[0, 2])


def test_without_overlap_enough_nothing_moves() -> None:
    moved = voted_boxes(torch.zeros(1, 4), BOXES, overlap=1.0)
    assert torch.allclose(moved, BOXES)


def test_a_box_without_area_keeps_its_place() -> None:
    flat = torch.tensor([[[3.0, 3.0, 3.0, 3.0], [0.0, 0.0, 9.0, 9.0]]])
    assert torch.allclose(voted_boxes(torch.zeros(1, 2), flat), flat)
