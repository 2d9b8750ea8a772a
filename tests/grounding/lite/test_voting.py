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
    found, moved = agreed_first(logits, boxes, boxes, 0.9)
    assert found.argmax() == 2
    torch.testing.assert_close(found, torch.tensor([[0.9, 0.4, 1.0, 0.5, -torch.inf]]))
    assert torch.equal(moved[0, [0, 1, 3, 4]], boxes[0, [0, 1, 3, 4]]), "only the first box moves"
    torch.testing.assert_close(moved[0, 2], voted_boxes(logits, boxes, 0.9)[0, 2])
    assert not torch.equal(moved[0, 2], boxes[0, 2])


def test_a_box_that_is_much_likelier_stays_first() -> None:
    logits = torch.tensor([[9.0, 0.4, 0.9, 0.5]])
    found, _ = agreed_first(logits, BOXES[:, [2, 0, 1, 3]], BOXES[:, [2, 0, 1, 3]], 0.5)
    assert torch.equal(found, logits)


def test_agreement_is_the_probability_of_being_right() -> None:
    generator = torch.Generator().manual_seed(0)
    corners = torch.rand(20, 6, 2, 2, generator=generator) * 100
    boxes = torch.cat([corners.amin(2), corners.amax(2)], -1)
    logits = torch.randn(20, 6, generator=generator)
    alone = 1.1  # nobody overlaps so much: no vote, the first box stays too
    found, moved = agreed_first(logits, boxes, boxes, alone, sharpness=1e6, temperature=1.0)
    torch.testing.assert_close(moved, boxes)
    shares = logits.softmax(1)
    for phrase in range(20):
        near = iou(boxes[phrase], boxes[phrase]) > 0.5
        right = [float(shares[phrase, near[at]].sum()) for at in range(6)]
        assert right[int(found[phrase].argmax())] == max(right)
