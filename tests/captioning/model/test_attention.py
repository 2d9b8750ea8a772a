from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.captioning import AttentionConfig, Captioner
from deixis.captioning.model.distributed_attention import DistributedAttention
from deixis.captioning.model.multi_head import MultiHeadAttention
from deixis.data.batch import Batch
from deixis.objectives import Context, CrossEntropy


def _distributed(branches: int, **options: object) -> DistributedAttention:
    torch.manual_seed(0)
    return DistributedAttention(6, 5, 4, branches, **options)  # type: ignore[arg-type]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(0, 999), st.integers(1, 3))
def test_branches_never_share_a_region(branches: int, seed: int, frames: int) -> None:
    """In every frame that has enough regions, the regions the branches choose are all different."""
    source = torch.Generator().manual_seed(seed)
    count = branches * frames + int(torch.randint(0, 4, (1,), generator=source))
    attention = _distributed(branches, join="random")
    regions = torch.randn(2, count, 6, generator=source)
    frame = (torch.arange(count) % frames).repeat(2, 1)
    looked = attention.prepare(regions, torch.ones(2, count, dtype=torch.bool), frame)
    query = torch.randn(2, 3, branches * 4, generator=source)
    weights = attention(query, looked)  # (K, B, G, N)
    assert torch.allclose(weights.sum(-1), torch.ones(branches, 2, 3))
    for at in range(frames):
        chosen = weights.masked_fill(frame[0] != at, -1).argmax(-1)  # (K, B, G)
        for row in chosen.flatten(1).T.tolist():
            assert len(set(row)) == branches
    for k in range(1, branches):  # what an earlier branch chose has no weight at all
        for at in range(frames):
            first = weights[0].masked_fill(frame[0] != at, -1).argmax(-1, keepdim=True)
            assert (weights[k].gather(-1, first) == 0).all()


def test_equation_7_by_hand() -> None:
    """R_k is R without the regions that branches before k chose; each branch has its own weights."""
    attention = _distributed(3, join="random")
    torch.manual_seed(1)
    regions, state = torch.randn(1, 5, 6), torch.randn(1, 1, 5)
    looked = attention.prepare(regions, torch.ones(1, 5, dtype=torch.bool), torch.zeros(1, 5, dtype=torch.long))
    weights = attention(state @ attention.query.weight.T, looked)
    left = set(range(5))
    for k in range(3):
        rows = slice(4 * k, 4 * k + 4)
        assert isinstance(attention.key, torch.nn.Linear)
        w_r, b, w_h = attention.key.weight[rows], attention.key.bias[rows], attention.query.weight[rows]
        z = {i: attention.score[k] @ torch.tanh(w_r @ regions[0, i] + b + w_h @ state[0, 0]) for i in left}
        total = sum(torch.exp(value) for value in z.values())
        for i in range(5):
            expected = float(torch.exp(z[i]) / total) if i in left else 0.0
            assert weights[k, 0, 0, i].item() == pytest.approx(expected, abs=1e-6)
        left.remove(max(z, key=lambda i: float(z[i])))


def test_clips_can_give_up_one_region_of_all_frames() -> None:
    frame = torch.tensor([[0, 0, 1, 1, 2, 2]])
    regions, query = torch.randn(1, 6, 6), torch.randn(1, 1, 8)
    kept = {}
    for exclusion in ("frame", "clip"):
        attention = _distributed(2, join="random", exclusion=exclusion)
        weights = attention(query, attention.prepare(regions, torch.ones(1, 6, dtype=torch.bool), frame))
        kept[exclusion] = int((weights[1, 0, 0] > 0).sum())
    assert kept == {"frame": 3, "clip": 5}


def test_without_regions_left_a_branch_sees_all() -> None:
    attention = _distributed(4, join="random")
    mask = torch.tensor([[True, True, False, False, False]])
    weights = attention(
        torch.randn(1, 2, 16), attention.prepare(torch.randn(1, 5, 6), mask, torch.zeros(1, 5, dtype=torch.long))
    )
    assert torch.isfinite(weights).all()
    assert torch.allclose(weights.sum(-1), torch.ones(4, 1, 2))
    assert ((weights[2] > 0) == mask.unsqueeze(1)).all()


def test_without_elimination_all_branches_see_all() -> None:
    attention = _distributed(3, elimination=False)
    weights = attention(
        torch.randn(1, 2, 12),
        attention.prepare(
            torch.randn(1, 5, 6), torch.ones(1, 5, dtype=torch.bool), torch.zeros(1, 5, dtype=torch.long)
        ),
    )
    assert (weights > 0).all()
    assert not attention.copies  # copies would stay equal for ever


def test_branches_join_as_copies_once(make_captioner: Callable[..., Captioner], batch: Batch) -> None:
    model = make_captioner(attention=AttentionConfig(kind="distributed", branches=3)).train()
    attention = model.decoder.attention
    assert isinstance(attention, DistributedAttention)
    model.active_branches = 1
    objective = CrossEntropy()
    objective(Context(model, batch))["cross_entropy"].backward()
    assert model.decode(model.encode(batch.regions), batch.words, batch.image_of).branches == 1
    before = attention.query.weight.detach().clone()
    model.active_branches = 3
    assert model.decode(model.encode(batch.regions), batch.words, batch.image_of).branches == 3
    width = attention.width
    for branch in range(3):
        assert torch.equal(attention.query.weight[branch * width : (branch + 1) * width], before[:width])
        assert torch.equal(attention.score[branch], attention.score[0])
    with torch.no_grad():
        attention.query.weight += torch.randn_like(attention.query.weight)  # they learn
    learnt = attention.query.weight.detach().clone()
    other = make_captioner(seed=5, attention=AttentionConfig(kind="distributed", branches=3)).train()
    other.load_state_dict(model.state_dict())
    other.decode(other.encode(batch.regions), batch.words, batch.image_of)
    resumed = other.decoder.attention
    assert isinstance(resumed, DistributedAttention)
    assert torch.equal(resumed.query.weight, learnt)  # a resumed run does not copy again
    with pytest.raises(ValueError, match="between 1 and 3"):
        model.active_branches = 4


def test_untrained_branches_do_not_answer(make_captioner: Callable[..., Captioner], batch: Batch) -> None:
    model = make_captioner(attention=AttentionConfig(kind="distributed", branches=3)).train()
    model.active_branches = 1
    CrossEntropy()(Context(model, batch))
    fresh = make_captioner(seed=1, attention=AttentionConfig(kind="distributed", branches=3))
    fresh.load_state_dict(model.state_dict())
    assert fresh.generate(batch.regions).attention.shape[0] == 1


@pytest.mark.parametrize("heads", [2, 3, 6])
def test_multi_head_by_formula(heads: int) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 5, heads)
    regions, state = torch.randn(1, 4, 8), torch.randn(1, 1, 5)
    mask = torch.tensor([[True, True, True, False]])
    looked = attention.prepare(regions, mask, torch.zeros(1, 4, dtype=torch.long))
    weights = attention(attention.query(state), looked)
    d = attention.head_width
    parts = []
    for h in range(heads):
        rows = slice(h * d, (h + 1) * d)
        q = attention.query.weight[rows] @ state[0, 0]
        k = regions[0, :3] @ attention.key.weight[rows].T + attention.key.bias[rows]
        v = regions[0, :3] @ attention.value.weight[rows].T + attention.value.bias[rows]
        alpha = torch.softmax(k @ q / d**0.5, 0)
        assert torch.allclose(weights[h, 0, 0, :3], alpha, atol=1e-6)
        assert weights[h, 0, 0, 3] == 0
        parts.append(alpha @ v)
    assert torch.allclose(attention.attend(weights, looked)[0, 0, 0], attention.join(torch.cat(parts)), atol=1e-6)
