from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deixis.objectives.base import Context
from deixis.objectives.matching import Matching, MatchingOptions
from deixis.objectives.ranking import triplet_loss
from tests.grounding.test_scan import batch_of, scan


@given(st.integers(0, 10_000), st.sampled_from(["hardest", "sum"]))
def test_equation_7_in_plain_loops(seed: int, negatives: str) -> None:
    rng = torch.Generator().manual_seed(seed)
    scores = torch.rand(3, 6, generator=rng)
    image_of = torch.tensor([0, 0, 1, 1, 2, 2])
    got = triplet_loss(scores, image_of, margin=0.2, negatives=negatives)  # type: ignore[arg-type]
    for c in range(6):
        b = int(image_of[c])
        true = float(scores[b, c])
        captions = [max(0.2 - true + float(scores[b, o]), 0) for o in range(6) if int(image_of[o]) != b]
        images = [max(0.2 - true + float(scores[o, c]), 0) for o in range(3) if o != b]
        expected = max(captions) + max(images) if negatives == "hardest" else sum(captions) + sum(images)
        assert float(got[c]) == pytest.approx(expected, abs=1e-6)


def test_captions_of_one_image_are_not_negatives_of_each_other() -> None:
    scores = torch.tensor([[0.5, 0.9], [0.0, 0.0]])
    assert triplet_loss(scores, torch.tensor([0, 0])).tolist() == [0.0, 0.0]


def test_a_batch_of_one_image_has_no_negatives() -> None:
    assert triplet_loss(torch.tensor([[0.1, 0.7]]), torch.tensor([0, 0])).tolist() == [0.0, 0.0]


def test_sum_and_mean_over_the_captions_of_a_batch() -> None:
    model, batch = scan(), batch_of()
    summed, mean = (
        Matching(MatchingOptions(reduction=how))(Context(model, batch))["matching"] for how in ("sum", "mean")
    )
    each = triplet_loss(model.table(batch), batch.image_of)  # (C,)
    assert summed.item() == pytest.approx(sum(each.tolist()), rel=1e-5)
    assert mean.item() == pytest.approx(sum(each.tolist()) / 3, rel=1e-5)
