"""Proposals: cells, boxes there and back, targets from the teachers, and the choice of regions."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from deixis.regions.network.proposals import LYING, PRIOR_SIDES, STANDING, THING, ProposalHead, cells_of, decode, encode
from deixis.regions.network.pyramid import STRIDES, Pyramid
from deixis.regions.network.select import Ranking, select
from deixis.regions.training.targets import (
    assign_regions,
    giou,
    mirror,
    proposal_losses,
    targets_of,
    teacher_cells_at,
)


def test_cells_by_hand() -> None:
    cells = cells_of(32, 96)
    assert len(cells.strides) == 4 * 12 + 2 * 6 + 1 * 3 + 1 * 2
    assert cells.centres[0].tolist() == [4, 4]
    assert cells.centres[1].tolist() == [12, 4]
    assert cells.centres[-1].tolist() == [96, 32]  # the stride-64 level hangs over the border
    assert cells.levels.bincount().tolist() == [48, 12, 3, 2]


def test_heads_answer_once_per_cell() -> None:
    pyramid, head = Pyramid(16), ProposalHead(16, 1)
    levels = (torch.zeros(2, 40, 8, 12), torch.zeros(2, 112, 4, 6), torch.zeros(2, 320, 2, 3))
    scores, offsets = head(pyramid(levels))
    count = len(cells_of(64, 96).strides)
    assert scores.shape == (2, count, 3)
    assert offsets.shape == (2, count, 3, 4)


def test_silent_network_gives_the_prior_box() -> None:
    cells = cells_of(32, 32)
    boxes = decode(torch.zeros(1, len(cells.strides), 3, 4), cells)
    width, height = PRIOR_SIDES[LYING]
    stride = STRIDES[0]
    assert boxes[0, 0, LYING].tolist() == [
        4 - width * stride / 2,
        4 - height * stride / 2,
        4 + width * stride / 2,
        4 + height * stride / 2,
    ]


@given(seed=st.integers(0, 10_000))
def test_decode_undoes_encode(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    cells = cells_of(64, 64)
    low = torch.rand(1, len(cells.strides), 3, 2, generator=draw) * 40
    boxes = torch.cat([low, low + 1 + torch.rand(low.shape, generator=draw) * 30], -1)
    torch.testing.assert_close(decode(encode(boxes, cells), cells), boxes, atol=1e-3, rtol=1e-4)


def test_giou_by_hand() -> None:
    a = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 1.0, 1.0]])
    b = torch.tensor([[0.0, 0.0, 2.0, 2.0], [1.0, 0.0, 3.0, 2.0], [2.0, 0.0, 3.0, 1.0]])
    # same box; half overlap: 2/6 with a full hull; apart: 0 - (3 - 2)/3
    torch.testing.assert_close(giou(a, b), torch.tensor([1.0, 1 / 3, -1 / 3]))


def test_teacher_cells_of_a_square_photo_at_its_own_size() -> None:
    """At 416 x 416 our cells are the teacher's cells; mirrored, each row is read backwards."""
    cells = cells_of(416, 416)
    straight = teacher_cells_at(cells, (416, 416), (416, 416), False)
    known = straight >= 0
    assert straight[known].tolist() == list(range(3549))
    assert (cells.levels[~known] == 3).all()
    turned = teacher_cells_at(cells, (416, 416), (416, 416), True)
    assert turned[:52].tolist() == list(range(51, -1, -1))


def test_regions_are_assigned_by_size_shape_and_place() -> None:
    cells = cells_of(320, 416)
    boxes = torch.tensor([[100.0, 100.0, 148.0, 124.0], [200.0, 40.0, 280.0, 240.0]])  # small lying, large standing
    which = assign_regions(boxes, torch.tensor([0.9, 0.8]), cells)  # (A, 2)
    lying, standing = which[:, 0] == 0, which[:, 1] == 1
    assert set(cells.levels[lying].tolist()) <= {0, 1}
    assert set(cells.levels[standing].tolist()) <= {1, 2}
    assert ((cells.centres[lying] - torch.tensor([124.0, 112.0])).abs().amax(1) <= cells.strides[lying]).all()
    assert not (which[:, 0] == 1).any()
    assert not (which[:, 1] == 0).any()


def test_mirror_twice_is_nothing() -> None:
    boxes = torch.rand(5, 4)
    torch.testing.assert_close(mirror(mirror(boxes)), boxes)


def test_perfect_boxes_cost_nothing_and_unseen_regions_are_not_judged() -> None:
    cells = cells_of(64, 64)
    things = torch.zeros(2, 3549, 5)
    things[..., 2:4] = 0.5
    things[..., 4] = 0.49
    found = torch.tensor([[0.25, 0.25, 0.75, 0.5, 0.9]])
    targets = targets_of(cells, (64, 64), [(416, 416), (416, 416)], [False, True], things, [found, None])
    assert targets.judged[0].all()
    assert not targets.judged[1, :, LYING:].any()
    assert targets.scores[0, 0, THING] == 0.7  # the square root of the teacher's score
    logits = torch.zeros(2, len(cells.strides), 3)
    losses = proposal_losses(logits, targets.boxes.clone(), targets, cells)
    for name in ("thing_box", "region_box", "thing_offset", "region_offset"):
        assert float(losses[name]) < 1e-5, name
    assert float(losses["region_score"]) > 0


def test_mirrored_targets_lie_on_the_other_side() -> None:
    cells = cells_of(64, 64)
    things = torch.zeros(1, 3549, 5)
    found = torch.tensor([[0.0, 0.0, 0.25, 0.75, 0.9]])
    targets = targets_of(cells, (64, 64), [(416, 416)], [True], things, [found])
    hit = targets.boxed[0, :, STANDING] > 0
    assert hit.any()
    assert (targets.boxes[0, hit, STANDING] == torch.tensor([48.0, 0.0, 64.0, 48.0])).all()


def test_select_ranks_suppresses_and_adds_the_whole() -> None:
    logits = torch.full((3, 3), -20.0)
    boxes = torch.zeros(3, 3, 4)
    logits[0, THING], boxes[0, THING] = 3.0, torch.tensor([0.0, 0.0, 10.0, 10.0])
    logits[1, THING], boxes[1, THING] = 2.0, torch.tensor([0.0, 0.0, 10.0, 10.5])  # nearly the same: suppressed
    logits[2, LYING], boxes[2, LYING] = 1.0, torch.tensor([20.0, 20.0, 300.0, 30.0])  # hangs over
    kept = select(logits, boxes, (64, 64), 2, Ranking())
    assert kept.boxes.tolist() == [[0, 0, 10, 10], [20, 20, 64, 30], [0, 0, 64, 64]]
    torch.testing.assert_close(kept.objectness[0], torch.sigmoid(torch.tensor(3.0)) ** 2)
    torch.testing.assert_close(kept.regionness[1], torch.sigmoid(torch.tensor(1.0)))
    assert kept.objectness[1] < 1e-6
