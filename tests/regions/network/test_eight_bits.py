"""Products in eight bits against whole numbers in numpy, and what they may not depend on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from deixis.errors import DeixisError
from deixis.regions.lite import LiteExtractor
from deixis.regions.network.eight_bits import EightBitLinear, in_eight_bits, in_single_precision
from deixis.regions.registry import lite


def test_a_product_is_that_of_whole_numbers() -> None:
    torch.manual_seed(0)
    exact = nn.Linear(48, 24)
    tokens = torch.randn(2, 5, 48) * torch.tensor([1e-3, 1.0, 30.0, 1.0, 0.0]).view(1, 5, 1)
    found = EightBitLinear(exact)(tokens)
    weight, x = exact.weight.detach().numpy().astype(np.float64), tokens.numpy().astype(np.float64)
    rows, each = np.abs(weight).max(1) / 127, np.maximum(np.abs(x).max(-1, keepdims=True) / 127, 1e-12)
    whole = np.rint(x / each) @ np.rint(weight / rows[:, None]).T
    wanted = whole * each * rows + exact.bias.detach().numpy()
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=2e-5, atol=2e-5)
    torch.testing.assert_close(found, exact(tokens), atol=0.5, rtol=0.02)  # the largest token is 30 times the others


def test_a_token_does_not_depend_on_the_others() -> None:
    torch.manual_seed(1)
    part, tokens = EightBitLinear(nn.Linear(32, 16)), torch.randn(7, 32)
    crowd = torch.cat([tokens, 1000 * torch.randn(50, 32)])
    assert torch.equal(part(crowd)[:7], part(tokens))


def test_going_back_gives_the_very_weights() -> None:
    network = nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8)))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    in_eight_bits(network)
    in_eight_bits(network)  # once is enough
    assert sum(isinstance(part, EightBitLinear) for part in network.modules()) == 2
    in_single_precision(network)
    after = network.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_answers_see_boxes_that_are_exact_and_tokens_that_nearly_are() -> None:
    photo = np.random.default_rng(0).integers(0, 255, (240, 320, 3), dtype=np.uint8)
    quick, exact = lite("lite", "cpu"), LiteExtractor.load()
    assert isinstance(quick, LiteExtractor)
    assert quick.network.namer is not None
    products = [isinstance(part, EightBitLinear) for part in quick.network.namer.network.modules()]
    assert sum(products) == 4 * 11, "all but the first block's"
    mine, theirs = quick.extract([photo])[0], exact.extract([photo])[0]
    assert torch.equal(mine.boxes, theirs.boxes)
    assert mine.fingerprint == theirs.fingerprint
    assert not torch.equal(mine.features, theirs.features)
    assert float(F.cosine_similarity(mine.features, theirs.features, dim=1).min()) > 0.98
    again = quick.computing_in("float32").extract([photo])[0]
    assert torch.equal(again.features, theirs.features)


def test_an_unknown_precision_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeixisError, match="one of int8, bf16, float32, got 'fp8'"):
        LiteExtractor.load().computing_in("fp8")  # type: ignore[arg-type]
