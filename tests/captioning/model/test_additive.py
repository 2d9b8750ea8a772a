from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.captioning.model import additive
from deixis.captioning.model.additive import additive_scores, masked_softmax


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(1, 6), st.integers(0, 999))
def test_softmax_of_scores_is_that_of_tanh(images: int, group: int, count: int, width: int, seed: int) -> None:
    source = torch.Generator().manual_seed(seed)
    keys = torch.randn(images, count, width, generator=source) * 3
    query = torch.randn(images, group, width, generator=source) * 3
    weight = torch.randn(width, generator=source)
    plain = torch.tanh(keys[:, None] + query[:, :, None]) @ weight
    scores = additive_scores(keys, query, weight)
    assert torch.allclose(scores, plain + weight.sum(), atol=1e-4)
    assert torch.allclose(scores.softmax(-1), plain.softmax(-1), atol=1e-5)


@pytest.mark.parametrize("kept", [0, 1000])
def test_gradients_are_right(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additive, "LARGEST_KEPT", kept)
    torch.manual_seed(0)
    keys = torch.randn(2, 4, 5, dtype=torch.float64, requires_grad=True)
    query = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(additive_scores, (keys, query, weight))


def test_masked_softmax_ignores_what_is_not_real() -> None:
    scores = torch.tensor([[1.0, 2.0, 50.0], [3.0, 3.0, 3.0]])
    mask = torch.tensor([[True, True, False], [False, False, False]])
    weights = masked_softmax(scores, mask)
    assert torch.allclose(weights[0, :2], torch.tensor([1.0, 2.0]).softmax(-1))
    assert weights[0, 2] == 0
    assert (weights[1] == 0).all()
