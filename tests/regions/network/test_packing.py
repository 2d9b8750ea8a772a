"""Weights in eight bits: how far they move, and that they move only once."""

from __future__ import annotations

import torch

from deixis.regions.network.packing import PACKED, packed, unpacked


def test_rows_move_by_at_most_half_a_level() -> None:
    torch.manual_seed(0)
    weight = torch.randn(6, 40) * torch.tensor([1e-3, 0.1, 1.0, 10.0, 1.0, 0.0]).unsqueeze(1)
    state = {f"{PACKED}0.qkv.weight": weight, f"{PACKED}0.qkv.bias": torch.randn(6), "trunk.weight": torch.randn(2, 3)}
    small = packed(state)
    assert small[f"{PACKED}0.qkv.weight"].dtype == torch.int8
    assert {value.dtype for name, value in small.items() if "qkv.weight" not in name} == {torch.float16}
    found = unpacked(small)
    assert found.keys() == state.keys()
    level = weight.abs().amax(1, keepdim=True) / 127
    assert bool(((found[f"{PACKED}0.qkv.weight"] - weight).abs() <= level / 2 + 1e-9).all())
    torch.testing.assert_close(found["trunk.weight"], state["trunk.weight"].half().float())


def test_packed_again_they_are_the_same() -> None:
    torch.manual_seed(1)
    first = packed({f"{PACKED}3.expand.weight": torch.randn(64, 32)})
    second = packed(unpacked(first))
    assert all(torch.equal(first[name], second[name]) for name in first)
