"""Calibration against known curves, counted errors and plain definitions."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deixis.errors import BadFileError, DeixisError
from deixis.grounding.calibration import (
    FILE,
    Calibration,
    Logistic,
    area_under_curve,
    calibration_error,
    cross_fitted,
    keep_threshold,
    reliability,
    signals,
)
from deixis.text.rules.chunker import chunk
from deixis.types import Regions
from tests.grounding.lite.test_model import VOCABULARY, grounder


def drawn(count: int = 20_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signals, the true probabilities, and labels drawn with them."""
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(count, 3)) * [1.0, 5.0, 0.5] + [0.0, 3.0, 1.0]
    true = 1 / (1 + np.exp(-(seen @ [1.0, -0.2, 1.5] - 1.0)))
    return seen, true, rng.random(count) < true


def test_a_curve_finds_the_one_that_made_the_labels() -> None:
    seen, true, labels = drawn()
    curve = Logistic.fit(seen, labels)
    assert curve.weights == pytest.approx((1.0, -0.2, 1.5), abs=0.1)
    assert float(np.abs(curve(seen) - true).max()) < 0.05


def test_labels_that_signals_separate_give_finite_curves() -> None:
    seen = np.array([[-1.0, 0, 0], [-2, 0, 0], [1, 0, 0], [2, 0, 0]])
    curve = Logistic.fit(seen, np.array([False, False, True, True]))
    assert all(math.isfinite(weight) for weight in curve.weights)
    assert curve(seen)[0] < 0.5 < curve(seen)[3]


def test_answers_that_are_all_right_cannot_be_told_apart() -> None:
    with pytest.raises(DeixisError, match="tell apart"):
        Logistic.fit(np.zeros((3, 3)), np.array([True, True, True]))


def test_cross_fitting_never_sees_the_photo_it_judges() -> None:
    """Labels that follow a photo's number alone cannot be foretold from other photos."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(50), 20)
    seen = rng.normal(size=(1000, 3))
    labels = rng.random(50)[groups] < 0.5
    changed = labels.copy()
    changed[groups == 7] = ~labels[groups == 7]
    held = groups % 5 == 7 % 5
    before, after = cross_fitted(seen, labels, groups), cross_fitted(seen, changed, groups)
    assert np.array_equal(before[held], after[held])
    assert not np.array_equal(before[~held], after[~held])


def test_the_error_is_counted_by_hand() -> None:
    belief = np.array([0.05, 0.05, 0.95, 0.85])
    label = np.array([False, True, True, True])
    assert reliability(belief, label) == [(0.05, 0.5, 2), (0.85, 1.0, 1), (0.95, 1.0, 1)]
    assert calibration_error(belief, label) == pytest.approx((2 * 0.45 + 0.15 + 0.05) / 4)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_the_area_is_the_share_of_pairs_in_the_right_order(rows: list[tuple[int, bool]]) -> None:
    score, label = np.array([float(s) for s, _ in rows]), np.array([right for _, right in rows])
    pairs = list(itertools.product(score[label], score[~label]))
    if not pairs:
        with pytest.raises(DeixisError):
            area_under_curve(score, label)
        return
    expected = sum((a > b) + 0.5 * (a == b) for a, b in pairs) / len(pairs)
    assert area_under_curve(score, label) == pytest.approx(expected)


def test_the_threshold_keeps_what_it_should() -> None:
    values = np.arange(100) / 100
    assert float((values >= keep_threshold(values, 0.95)).mean()) == pytest.approx(0.95)


def test_signals_are_the_share_of_the_best_and_of_those_around_it() -> None:
    boxes = torch.tensor([[[0.0, 0, 10, 10], [0, 0, 10, 9], [50, 50, 60, 60], [0, 0, 10, 10]]])
    logits = torch.tensor([[3.0, 2.0, 1.0, 0.0]]).log()  # the last is padding
    found = signals(logits, boxes, torch.tensor([0.7]))
    assert found[0] == pytest.approx([math.log(0.5 / 0.5), math.log((5 / 6) / (1 / 6)), 0.7], abs=1e-6)


CALIBRATION = Calibration(Logistic((0.5, 0.2, 0.1), -1.0), Logistic((0.0, 0.0, 2.0), 0.5), 0.4, {"split": "val"})


def test_it_is_kept_beside_the_weights(tmp_path: Path) -> None:
    assert Calibration.load(tmp_path) is None
    CALIBRATION.save(tmp_path)
    assert Calibration.load(tmp_path) == CALIBRATION
    assert json.loads((tmp_path / FILE).read_text())["threshold"] == 0.4


@pytest.mark.parametrize("damage", ["", "[]", '{"format": 2}', '{"format": 1, "right": {"weights": [1], "bias": 0}}'])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str) -> None:
    (tmp_path / FILE).write_text(damage)
    with pytest.raises(BadFileError, match=FILE):
        Calibration.load(tmp_path)


def test_answers_carry_probabilities_and_doubt() -> None:
    model = grounder()
    regions = Regions(
        boxes=torch.tensor([[0.0, 0.0, 50.0, 50.0], [50.0, 50.0, 90.0, 90.0], [0.0, 0.0, 100.0, 100.0]]),
        features=torch.randn(3, 5, generator=torch.Generator().manual_seed(0)),
        objectness=torch.tensor([0.9, 0.2, 0.1]),
        class_probs=torch.zeros(3, 3),
        size=(100, 100),
        fingerprint="test",
    )
    sentence = chunk("a dog holds a cat", VOCABULARY)
    plain = model.ground(regions, sentence).phrases
    for threshold, found in ((0.0, True), (1.0, False)):
        model.calibration = Calibration(CALIBRATION.right, CALIBRATION.found, threshold, {})
        judged = model.ground(regions, sentence).phrases
        assert [phrase.found for phrase in judged] == [found, found]
        assert [phrase.boxes for phrase in judged] == [phrase.boxes for phrase in plain]
        assert [phrase.score for phrase in judged] != [phrase.score for phrase in plain]
        assert all(0 < phrase.score < 1 for phrase in judged)
