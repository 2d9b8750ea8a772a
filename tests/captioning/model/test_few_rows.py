from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deixis.captioning.model.few_rows import FEW, linear


@given(rows=st.integers(0, FEW + 2), branches=st.integers(1, 2), bias=st.booleans(), wide=st.booleans())
def test_few_rows_are_mapped_as_many(rows: int, branches: int, bias: bool, wide: bool) -> None:
    generator = torch.Generator().manual_seed(rows)
    layer = torch.nn.Linear(5, 7, bias=bias, dtype=torch.float64)
    weight = torch.cat([layer.weight, layer.weight], 1)[:, :5] if wide else layer.weight  # also a part of a weight
    x = torch.randn(branches, rows, 5, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        found = linear(x, weight, layer.bias)
        by_hand = (x.unsqueeze(-2) * layer.weight).sum(-1) + (layer.bias if bias else 0.0)
    assert found.shape == (branches, rows, 7)
    assert found.is_contiguous()
    torch.testing.assert_close(found, by_hand)


def test_gradients_go_the_usual_way() -> None:
    layer, x = torch.nn.Linear(5, 7), torch.randn(3, 5)
    linear(x, layer.weight, layer.bias).sum().backward()  # type: ignore[no-untyped-call]
    assert layer.weight.grad is not None
    torch.testing.assert_close(layer.weight.grad, x.sum(0).expand(7, 5))
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        assert linear(x, layer.weight, layer.bias).dtype == torch.bfloat16


@pytest.mark.parametrize("rows", [3, 5])
def test_as_exact_as_the_librarys(rows: int) -> None:
    generator = torch.Generator().manual_seed(0)
    weight, x = torch.randn(512, 256, generator=generator), torch.randn(rows, 256, generator=generator)
    with torch.no_grad():
        exact = x.double() @ weight.double().t()
        assert (linear(x, weight) - exact).abs().max() < 1e-4
