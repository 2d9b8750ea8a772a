"""Box voting against hand-worked means."""

from __future__ import annotations

import math

import torch

from deixis.geometry import iou
from deixis.grounding.lite.voting import agreed_first, voted_boxes

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


def test_the_box_that_most_shares_agree_with_comes_first() -> None:
    boxes = torch.tensor([[[50.0, 50.0, 60.0, 60.0], [0, 0, 10, 10], [0, 0, 10, 11], [0, 0, 10, 12], [0, 0, 0, 0]]])
    logits = torch.tensor([[1.0, 0.4, 0.9, 0.5, -torch.inf]])  # the likeliest stands alone, three others agree
    found = agreed_first(logits, boxes, boxes)
    assert found.argmax() == 2
    torch.testing.assert_close(found, torch.tensor([[0.9, 0.4, 1.0, 0.5, -torch.inf]]))


def test_a_box_that_is_much_likelier_stays_first() -> None:
    logits = torch.tensor([[9.0, 0.4, 0.9, 0.5]])
    assert torch.equal(agreed_first(logits, BOXES[:, [2, 0, 1, 3]], BOXES[:, [2, 0, 1, 3]]), logits)


def test_agreement_is_the_probability_of_being_right() -> None:
    generator = torch.Generator().manual_seed(0)
    corners = torch.rand(20, 6, 2, 2, generator=generator) * 100
    boxes = torch.cat([corners.amin(2), corners.amax(2)], -1)
    logits = torch.randn(20, 6, generator=generator)
    found = agreed_first(logits, boxes, boxes, sharpness=1e6, temperature=1.0).argmax(1)
    shares = logits.softmax(1)
    for phrase in range(20):
        right = [
            float(shares[phrase, iou(boxes[phrase, at : at + 1], boxes[phrase])[0] > 0.5].sum()) for at in range(6)
        ]
        assert right[int(found[phrase])] == max(right)
