from __future__ import annotations

from typing import Any

import pytest
import torch

from deixis.errors import DeixisError
from deixis.grounding.baselines import build_baseline
from deixis.grounding.ensemble import Ensemble
from deixis.text.vocabulary import Entry, Vocabulary


@torch.no_grad()
def test_an_ensemble_is_the_weighted_mean_of_log_probabilities_and_boxes(cases: Any) -> None:
    batch = cases.batch()
    one, two = cases.reir(), build_baseline("objectness", cases.vocabulary)
    both = Ensemble([one, two], weights=[1.0, 3.0])
    logits, boxes = both.ranked_boxes(batch)
    (a, a_boxes), (b, b_boxes) = one.ranked_boxes(batch), two.ranked_boxes(batch)
    for phrase in range(5):
        for region in range(4 if phrase < 3 else 3):
            p = float(a[phrase].softmax(0)[region]) ** 0.25 * float(b[phrase].softmax(0)[region]) ** 0.75
            assert float(logits[phrase, region].exp()) == pytest.approx(p, rel=1e-4)
    torch.testing.assert_close(boxes, 0.25 * a_boxes + 0.75 * b_boxes)
    assert torch.isneginf(logits[3:, 3]).all()
    torch.testing.assert_close(both.match(batch), 0.25 * one.match(batch))
    assert both.reads_relations


@torch.no_grad()
def test_one_member_changes_no_order_and_a_weight_of_0_leaves_a_member_out(cases: Any) -> None:
    batch, one = cases.batch(), cases.reir()
    for ensemble in (Ensemble([one]), Ensemble([one, build_baseline("random", cases.vocabulary)], [1.0, 0.0])):
        logits, boxes = ensemble.ranked_boxes(batch)
        torch.testing.assert_close(logits.softmax(1), one.ranked_boxes(batch)[0].softmax(1))
        torch.testing.assert_close(boxes, one.ranked_boxes(batch)[1])
        torch.testing.assert_close(ensemble.attention(batch), one.attention(batch))


def test_members_must_fit_together(cases: Any) -> None:
    one = build_baseline("whole", cases.vocabulary)
    with pytest.raises(DeixisError, match="at least one"):
        Ensemble([])
    with pytest.raises(DeixisError, match="different words"):
        Ensemble([one, build_baseline("whole", Vocabulary([Entry("boat", 1)]))])
    for weights in ([1.0, 1.0], [-1.0], [0.0]):
        with pytest.raises(DeixisError, match="weights"):
            Ensemble([one], weights)
