from __future__ import annotations

import torch

from deixis.captioning.search.sampling import draw, narrow


def test_draws_follow_the_distribution() -> None:
    p = torch.tensor([0.0, 0.5, 0.2, 0.0, 0.3, 0.0])
    drawn = draw(p.repeat(20000, 1), torch.Generator().manual_seed(0))
    shares = torch.bincount(drawn, minlength=6) / 20000
    assert torch.allclose(shares, p, atol=0.015)
    assert shares[[0, 3, 5]].sum() == 0


def test_rounding_never_draws_an_impossible_word() -> None:
    p = torch.tensor([[0.1] * 10 + [0.0] * 5]).repeat(2000, 1) * 0.3333  # does not sum to 1 either
    assert draw(p, torch.Generator().manual_seed(0)).max() <= 9


def test_narrowing_by_hand() -> None:
    logs = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    assert torch.allclose(narrow(logs), logs.exp())
    assert torch.allclose(narrow(logs, top_k=2), torch.tensor([[0.625, 0.375, 0.0, 0.0]]))
    assert torch.allclose(narrow(logs, top_p=0.6), torch.tensor([[0.625, 0.375, 0.0, 0.0]]))
    assert torch.allclose(narrow(logs, top_p=0.5), torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
    assert torch.allclose(narrow(logs, top_p=1e-6), torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
    squared = torch.tensor([[0.25, 0.09, 0.0225, 0.0025]])
    assert torch.allclose(narrow(logs, temperature=0.5), squared / squared.sum())
