from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from deixis.grounding import cross_attention as scan

SEEDS = st.integers(0, 10_000)


def vectors(seed: int, words: int = 4, regions: int = 5, width: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    e = torch.nn.functional.normalize(torch.randn(words, width, generator=rng, dtype=torch.float64), dim=-1)
    v = torch.nn.functional.normalize(torch.randn(regions, width, generator=rng, dtype=torch.float64), dim=-1)
    return e, v


@given(SEEDS)
def test_the_whole_score_is_that_of_equations_4_to_6_written_out(seed: int) -> None:
    e, v = vectors(seed)
    temperature = 9.0
    # The paper's way: loops, and the attended vector itself.
    total = 0.0
    for t in range(len(e)):
        weights = []
        for i in range(len(v)):
            positive = [max(float(v[i] @ word), 0.0) for word in e]
            norm = math.sqrt(sum(p * p for p in positive))
            assume(norm == 0 or norm > 1e-2)  # nearer to 0 the guard against dividing by it shows
            weights.append(math.exp(temperature * (positive[t] / norm if norm else 0.0)))
        attended = sum(w / sum(weights) * v[i] for i, w in enumerate(weights))
        assert isinstance(attended, torch.Tensor)
        total += float(e[t] @ attended / attended.norm())
    # Ours.
    similarity, everyone = e @ v.T, torch.ones(len(e), dtype=torch.bool)
    alpha = scan.attention(
        scan.normalise(similarity, everyone, "clipped-l2"), torch.ones(len(v), dtype=torch.bool), 9.0
    )
    score = scan.pool(scan.relevance(alpha, similarity, v @ v.T), everyone, "mean")
    assert float(score) == pytest.approx(total / len(e), rel=1e-6)


@given(SEEDS, st.sampled_from(["clipped-l2", "leaky-l2", "l2", "clipped-l1", "softmax", "clipped", "none"]))
def test_padding_changes_nothing(seed: int, how: scan.Normalisation) -> None:
    e, v = vectors(seed)
    longer_e, longer_v = vectors(seed + 1, words=7, regions=9)
    longer_e[: len(e)], longer_v[: len(v)] = e, v
    word_mask, region_mask = torch.arange(7) < len(e), torch.arange(9) < len(v)

    def score(e: torch.Tensor, v: torch.Tensor, words: torch.Tensor, regions: torch.Tensor) -> list[float]:
        similarity = e @ v.T
        alpha = scan.attention(scan.normalise(similarity, words, how), regions, 9.0)
        relevances = scan.relevance(alpha, similarity, v @ v.T)
        return [float(scan.pool(relevances, words, pooling)) for pooling in ("mean", "sum", "max", "logsumexp")]

    short = score(e, v, torch.ones(len(e), dtype=torch.bool), torch.ones(len(v), dtype=torch.bool))
    assert score(longer_e, longer_v, word_mask, region_mask) == pytest.approx(short, rel=1e-9)


def test_normalisations_by_hand() -> None:
    similarity = torch.tensor([[0.3], [0.4], [-0.5]])  # three words, one region
    everyone = torch.tensor([True, True, True])
    expected = {
        "clipped-l2": [0.6, 0.8, 0.0],
        "l2": [0.3 / math.sqrt(0.5), 0.4 / math.sqrt(0.5), -0.5 / math.sqrt(0.5)],
        "leaky-l2": [0.3 / math.sqrt(0.2525), 0.4 / math.sqrt(0.2525), -0.05 / math.sqrt(0.2525)],
        "clipped-l1": [3 / 7, 4 / 7, 0.0],
        "clipped": [0.3, 0.4, 0.0],
        "none": [0.3, 0.4, -0.5],
        "softmax": [math.exp(s) / sum(math.exp(x) for x in (0.3, 0.4, -0.5)) for s in (0.3, 0.4, -0.5)],
    }
    for how, values in expected.items():
        got = scan.normalise(similarity, everyone, how).flatten().tolist()  # type: ignore[arg-type]
        assert got == pytest.approx(values, rel=1e-5), how


def test_only_nouns_count_in_the_norm() -> None:
    similarity = torch.tensor([[0.3], [0.4]])
    nouns = torch.tensor([True, False])
    assert scan.normalise(similarity, nouns, "clipped-l2").flatten().tolist() == pytest.approx([1.0, 4 / 3])


def test_padded_regions_get_no_weight_and_no_gradient() -> None:
    similarity = torch.randn(2, 3, requires_grad=True)
    alpha = scan.attention(similarity, torch.tensor([True, True, False]), 4.0)
    assert alpha[:, 2].tolist() == [0, 0]
    (gradient,) = torch.autograd.grad(alpha[:, 0].sum(), similarity)
    assert gradient[:, 2].tolist() == [0, 0]


def test_a_region_unlike_every_word_has_a_finite_gradient() -> None:
    similarity = torch.tensor([[-0.2], [-0.1]], requires_grad=True)
    total = scan.normalise(similarity, torch.tensor([True, True]), "clipped-l2").sum()
    (gradient,) = torch.autograd.grad(total, similarity)
    assert torch.isfinite(gradient).all()


def test_pooling_by_hand() -> None:
    relevances, mask = torch.tensor([0.2, 0.6, 0.9]), torch.tensor([True, True, False])
    assert scan.pool(relevances, mask, "mean").item() == pytest.approx(0.4)
    assert scan.pool(relevances, mask, "sum").item() == pytest.approx(0.8)
    assert scan.pool(relevances, mask, "max").item() == pytest.approx(0.6)
    expected = math.log(math.exp(6 * 0.2) + math.exp(6 * 0.6)) / 6
    assert scan.pool(relevances, mask, "logsumexp").item() == pytest.approx(expected)
