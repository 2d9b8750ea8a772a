from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from deixis.captioning import AttentionConfig, Captioner
from deixis.captioning.model.captioner import ATTENTION
from deixis.captioning.model.distributed_attention import DistributedAttention
from deixis.data.batch import Batch

Make = Callable[..., Captioner]


def branches_of(model: Captioner) -> DistributedAttention:
    attention = model.decoder.attention
    assert isinstance(attention, DistributedAttention)
    return attention


def attention_of(model: Captioner, batch: Batch) -> torch.Tensor:
    return model.decode(model.encode(batch.regions), batch.words, batch.image_of).attention


def test_the_first_branch_is_the_soft_attention_it_came_from(make_captioner: Make, batch: Batch) -> None:
    soft = make_captioner(seed=1)
    branched = make_captioner(seed=2, attention=AttentionConfig("distributed", branches=3))
    branched.load_state_dict(branched.adopt(soft.state_dict()))
    one, many = attention_of(soft, batch)[0], attention_of(branched, batch)
    assert len(many) == 3  # all branches have weights now, so all take part when answering
    assert torch.allclose(one, many[0], atol=1e-5)
    score = branches_of(branched).score
    for branch in (1, 2):
        assert not torch.equal(score[branch], score[0])
        assert (score[branch] - score[0]).std() < 0.2 * score[0].std()


def test_copies_without_elimination_are_apart_from_the_start(make_captioner: Make, batch: Batch) -> None:
    branched = make_captioner(attention=AttentionConfig("distributed", branches=2, elimination=False))
    branched.load_state_dict(branched.adopt(make_captioner(seed=1).state_dict()))
    first, second = attention_of(branched, batch)
    assert not torch.equal(first, second)
    assert torch.allclose(first, second, atol=0.1)


def test_every_process_makes_the_same_branches(make_captioner: Make) -> None:
    weights = make_captioner(seed=1).state_dict()
    made = []
    for seed in (5, 6):
        torch.manual_seed(seed)
        made.append(make_captioner(seed=2, attention=AttentionConfig("distributed", branches=3)).adopt(weights))
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])


@pytest.mark.parametrize("branches", [2, 5])
def test_branches_that_are_there_are_kept(branches: int, make_captioner: Make) -> None:
    old = make_captioner(seed=1, attention=AttentionConfig("distributed", branches=3))
    branches_of(old).joined.fill_(3)
    new = make_captioner(seed=2, attention=AttentionConfig("distributed", branches=branches))
    new.load_state_dict(new.adopt(old.state_dict()))
    kept = min(3, branches)
    width = branches_of(new).width
    assert torch.equal(branches_of(new).score[:kept], branches_of(old).score[:kept])
    assert torch.equal(branches_of(new).query.weight[: kept * width], branches_of(old).query.weight[: kept * width])


def test_branches_that_never_trained_are_not_taken(make_captioner: Make) -> None:
    old = make_captioner(seed=1, attention=AttentionConfig("distributed", branches=3))  # joined is 1
    new = make_captioner(seed=2, attention=AttentionConfig("distributed", branches=3))
    new.load_state_dict(new.adopt(old.state_dict()))
    assert torch.equal(branches_of(new).score[0], branches_of(old).score[0])
    assert not torch.equal(branches_of(new).score[1], branches_of(old).score[1])


def test_soft_attention_takes_the_first_branch(make_captioner: Make) -> None:
    old = make_captioner(seed=1, attention=AttentionConfig("distributed", branches=3))
    new = make_captioner(seed=2)
    new.load_state_dict(new.adopt(old.state_dict()))
    assert torch.equal(new.state_dict()[f"{ATTENTION}score"], branches_of(old).score[0])


def test_multi_head_attention_starts_fresh_and_the_rest_is_taken(make_captioner: Make) -> None:
    soft = make_captioner(seed=1).state_dict()
    heads = make_captioner(seed=2, attention=AttentionConfig("multi_head", branches=2))
    adopted = heads.adopt(soft)
    own = heads.state_dict()
    for name, value in adopted.items():
        assert torch.equal(value, own[name] if name.startswith(ATTENTION) else soft[name])
    heads.load_state_dict(adopted)
