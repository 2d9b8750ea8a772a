"""Proposals: cells, boxes there and back, targets from the teachers, and the choice of regions."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from deixis.regions.network.proposals import LYING, PRIOR_SIDES, STANDING, THING, ProposalHead, cells_of, decode, encode
from deixis.regions.network.pyramid import STRIDES, Pyramid
from deixis.regions.network.select import Ranking, select
from deixis.regions.training.targets import assign, giou, owners, proposal_losses, targets_of


def test_cells_by_hand() -> None:
    cells = cells_of(32, 96)
    assert len(cells.strides) == 4 * 12 + 2 * 6 + 1 * 3 + 1 * 2
    assert cells.centres[0].tolist() == [4, 4]
    assert cells.centres[1].tolist() == [12, 4]
    assert cells.centres[-1].tolist() == [96, 32]  # the stride-64 level hangs over the border
    assert cells.levels.bincount().tolist() == [48, 12, 3, 2]


def test_heads_answer_once_per_cell() -> None:
    pyramid, head = Pyramid(16, (40, 112, 320)), ProposalHead(16, 1)
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


def test_boxes_are_assigned_by_size_and_place() -> None:
    cells = cells_of(320, 416)
    boxes = torch.tensor([[100.0, 100.0, 148.0, 124.0], [200.0, 40.0, 280.0, 240.0]])  # small, large
    claim = assign(boxes, torch.tensor([0.9, 0.8]), cells)  # (A, 2)
    small, large = claim[:, 0] > 0, claim[:, 1] > 0
    assert set(cells.levels[small].tolist()) <= {0, 1}
    assert set(cells.levels[large].tolist()) <= {1, 2}
    assert ((cells.centres[small] - torch.tensor([124.0, 112.0])).abs().amax(1) <= cells.strides[small]).all()
    which = owners(claim, torch.tensor([True, False]))
    assert (which[small] == 0).all()
    assert (which[~small] == -1).all()


def test_the_tiniest_and_the_largest_boxes_have_a_cell() -> None:
    cells = cells_of(320, 416)
    boxes = torch.tensor([[99.0, 99.0, 103.0, 102.0], [0.0, 0.0, 416.0, 320.0]])
    claim = assign(boxes, torch.ones(2), cells)
    assert set(cells.levels[claim[:, 0] > 0].tolist()) == {0}
    assert set(cells.levels[claim[:, 1] > 0].tolist()) == {3}


def test_perfect_boxes_cost_nothing_and_unseen_regions_are_not_judged() -> None:
    cells = cells_of(64, 64)
    thing, found = torch.tensor([[0.25, 0.25, 0.75, 0.75, 0.49]]), torch.tensor([[0.25, 0.25, 0.75, 0.5, 0.9]])
    targets = targets_of(cells, (64, 64), [thing, thing[:0]], [found, None])
    assert targets.judged[0].all()
    assert targets.judged[1, :, THING].all()
    assert not targets.judged[1, :, LYING:].any()
    hit = targets.boxed[0, :, THING] > 0
    assert hit.any()
    torch.testing.assert_close(targets.scores[0, hit, THING], torch.full((int(hit.sum()),), 0.7))  # a square root
    assert (targets.boxes[0, hit, THING] == torch.tensor([16.0, 16.0, 48.0, 48.0])).all()
    assert not (targets.boxed[0, :, STANDING] > 0).any()  # the region lies
    logits = torch.zeros(2, len(cells.strides), 3)
    losses = proposal_losses(logits, targets.boxes.clone(), targets, cells)
    for name in ("thing_box", "region_box", "thing_offset", "region_offset"):
        assert float(losses[name]) < 1e-5, name
    assert float(losses["region_score"]) > 0


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
