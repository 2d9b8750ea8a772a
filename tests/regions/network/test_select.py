"""Which candidates stay, and where their boxes end up."""

from __future__ import annotations

import pytest
import torch

from deixis.regions.network.select import Ranking, select

SHAPE = (100, 100)


def candidates(things: list[tuple[float, list[float]]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (A, 3) and boxes (A, 3, 4) of things with these scores; nothing is a region."""
    logits, boxes = torch.full((len(things), 3), -20.0), torch.zeros(len(things), 3, 4)
    for row, (score, box) in enumerate(things):
        logits[row, 0] = torch.logit(torch.tensor(score))
        boxes[row, 0] = torch.tensor(box)
    return logits, boxes


def test_the_best_of_two_that_coincide_stays_and_the_whole_image_is_last() -> None:
    logits, boxes = candidates([(0.6, [0, 0, 50, 50]), (0.8, [0, 0, 50, 45]), (0.5, [60, 60, 90, 90])])
    kept = select(logits, boxes, SHAPE, 2, Ranking(suppress=0.7))
    assert kept.boxes.tolist() == [[0, 0, 50, 45], [60, 60, 90, 90], [0, 0, 100, 100]]


def test_candidates_that_coincide_move_a_box_by_rank_and_squared_overlap() -> None:
    logits, boxes = candidates([(0.6, [0, 0, 50, 50]), (0.8, [0, 0, 50, 45]), (0.5, [60, 60, 90, 90])])
    kept = select(logits, boxes, SHAPE, 2, Ranking(suppress=0.7, vote=0.7))
    overlap = 45 / 50
    bottom = (0.8 * 45 + 0.6 * overlap**2 * 50) / (0.8 + 0.6 * overlap**2)
    assert kept.boxes[0].tolist() == pytest.approx([0, 0, 50, bottom], abs=1e-4)
    assert kept.boxes[1].tolist() == pytest.approx([60, 60, 90, 90], abs=1e-4)  # nobody else speaks for it


def test_a_box_without_an_area_stays_where_it_is() -> None:
    logits, boxes = candidates([(0.9, [100, 20, 140, 60])])  # wholly outside, so clamped to a line
    kept = select(logits, boxes, SHAPE, 1, Ranking(suppress=0.7, vote=0.7))
    assert torch.isfinite(kept.boxes).all()
    assert kept.boxes[0].tolist() == [100, 20, 100, 60]
