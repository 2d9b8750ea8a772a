"""Coverage against hand-worked pictures and an independent count of cells."""

from __future__ import annotations

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from deixis.grounding.lite.coverage import cell_masks, coverage


def masks(boxes: list[list[float]], grid: int = 10) -> torch.Tensor:
    rows = torch.tensor([boxes])
    return cell_masks(rows, torch.ones(rows.shape[:2], dtype=torch.bool), grid)


def test_cells_hold_the_share_of_them_that_a_box_covers() -> None:
    cells = masks([[0.0, 0.0, 0.25, 0.1]]).reshape(10, 10)  # two and a half cells of the first row
    expected = torch.zeros(10, 10)
    expected[0, :3] = torch.tensor([1.0, 1.0, 0.5])
    assert torch.allclose(cells, expected, atol=1e-6)


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_cells_add_up_to_the_area(numbers: list[float]) -> None:
    x1, x2 = sorted(numbers[:2])
    y1, y2 = sorted(numbers[2:])
    assert math.isclose(float(masks([[x1, y1, x2, y2]], 7).sum()) / 49, (x2 - x1) * (y2 - y1), abs_tol=1e-5)


def test_padded_regions_cover_nothing() -> None:
    cells = cell_masks(torch.tensor([[[0.0, 0.0, 1.0, 1.0]] * 2]), torch.tensor([[True, False]]), 4)
    assert float(cells[0, 1].sum()) == 0.0


THING = [0.2, 0.2, 0.8, 0.8]
PART = [0.2, 0.2, 0.5, 0.5]
OTHER_PART = [0.5, 0.5, 0.8, 0.8]
CORNER = [0.0, 0.0, 0.2, 0.2]
WHOLE = [0.0, 0.0, 1.0, 1.0]
LEFT, RIGHT = [0.0, 0.0, 0.5, 1.0], [0.5, 0.0, 1.0, 1.0]


def best(boxes: list[list[float]], scores: list[float]) -> int:
    cells = masks(boxes)
    values = coverage(torch.tensor([scores]), cells, torch.ones(1, len(boxes), dtype=torch.bool))
    return int(values.argmax())


def test_the_thing_covers_the_evidence_of_its_parts() -> None:
    boxes = [PART, THING, OTHER_PART, CORNER, [0.8, 0.0, 1.0, 0.2], [0.0, 0.8, 0.2, 1.0], [0.8, 0.8, 1.0, 1.0], WHOLE]
    scores = [3.0, 3.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.5]
    assert best(boxes, scores) == 1


def test_evidence_everywhere_is_covered_by_the_whole_picture() -> None:
    assert best([LEFT, RIGHT, CORNER, THING, WHOLE], [3.0, 3.0, 2.9, 0.1, 3.0]) == 4


def test_the_value_is_a_soft_overlap_counted_by_hand() -> None:
    """Two halves; only the left is evidence, so the heat is 1 on the left and e on the right."""
    cells = masks([LEFT, RIGHT], 2)
    scores = torch.tensor([[2.0, 0.0]])  # of two, the lower is the median
    found = coverage(scores, cells, torch.ones(1, 2, dtype=torch.bool), small=0.0)[0]
    high, low = (1 / (1 + math.exp(-8 * (level - 0.6))) for level in (1.0, 0.0))
    left, right = 2.0, 2 * low / high  # heat of two cells each, the hottest set to 1
    expected = [
        math.log((left + 1e-3) / (left + right + 2 - left + 1e-3)),
        math.log((right + 1e-3) / (left + right + 2 - right + 1e-3)),
    ]
    assert torch.allclose(found, torch.tensor(expected), atol=1e-4)


def test_padding_changes_nothing() -> None:
    boxes = [PART, THING, OTHER_PART, CORNER]
    scores = torch.tensor([[3.0, 2.0, 1.0, 0.0]])
    alone = coverage(scores, masks(boxes), torch.ones(1, 4, dtype=torch.bool))
    mask = torch.tensor([[True] * 4 + [False] * 3])
    cells = cell_masks(torch.tensor([boxes + [WHOLE] * 3]), mask, 10)
    padded = coverage(torch.cat([scores, torch.full((1, 3), 9.0)], 1), cells, mask)
    assert torch.allclose(padded[:, :4], alone, atol=1e-6)


def test_equal_scores_give_finite_answers() -> None:
    values = coverage(torch.zeros(1, 2), masks([LEFT, RIGHT]), torch.ones(1, 2, dtype=torch.bool))
    assert torch.isfinite(values).all()
