from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from deixis.captioning import AttentionConfig, Captioner, CaptionerGrounder
from deixis.captioning.model.distributed_attention import DistributedAttention
from deixis.data.batch import Batch, WordKind
from deixis.errors import BadRecipeError
from deixis.objectives import Context, Distillation, DistillationOptions
from deixis.objectives.distillation import what_is_left
from deixis.text.vocabulary import Vocabulary

Make = Callable[..., Captioner]


@pytest.fixture
def teacher(make_captioner: Make, vocabulary: Vocabulary) -> CaptionerGrounder:
    return CaptionerGrounder(make_captioner(seed=9), vocabulary)


def _kl(p: Tensor, q: Tensor) -> Tensor:
    return torch.stack([a * (a / b).log() for a, b in zip(p, q, strict=True) if a > 0]).sum()


@pytest.mark.parametrize(("form", "loss"), [("paper", "kl"), ("code", "kl"), ("paper", "nll")])
@pytest.mark.parametrize("words", [("noun",), ("noun", "verb")])
def test_equation_15_by_formula(
    form: str, loss: str, words: tuple[str, ...], teacher: CaptionerGrounder, make_captioner: Make, batch: Batch
) -> None:
    model = make_captioner()
    options = DistillationOptions(form=form, loss=loss, words=words)  # type: ignore[arg-type]
    value = Distillation(options, teacher=teacher)(Context(model, batch))["distillation"]
    beta = model.decode(model.encode(batch.regions), batch.words, batch.image_of).attention[0]  # student
    alpha = teacher.attention(batch)  # teacher
    kinds = [int(WordKind[word.upper()]) for word in words]
    expected = []
    for c in range(len(batch)):
        for t in range(6):
            if int(batch.tags[c, t]) in kinds and batch.words[c, t] != 0:
                a, b = alpha[c, t], beta[c, t]
                real = batch.regions.mask[batch.image_of[c]]
                if loss == "nll":
                    expected.append(-b[a.argmax()].log())
                else:
                    expected.append(_kl(b[real], a[real]) if form == "paper" else _kl(a[real], b[real]))
    assert expected
    assert torch.allclose(value, torch.stack(expected).mean(), atol=1e-5)


@pytest.mark.parametrize("attention", [AttentionConfig(), AttentionConfig(kind="distributed", branches=2)])
@pytest.mark.parametrize("form", ["paper", "code"])
def test_attention_moves_towards_the_teacher(
    form: str, attention: AttentionConfig, teacher: CaptionerGrounder, make_captioner: Make, batch: Batch
) -> None:
    model = make_captioner(attention=attention).train()
    objective = Distillation(DistillationOptions(form=form), teacher=teacher)  # type: ignore[arg-type]
    assert list(objective.parameters()) == []  # the teacher is not ours
    before = [p.clone() for p in teacher.captioner.parameters()]
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    model.eval()
    losses = []
    for _ in range(40):
        loss = objective(Context(model, batch))["distillation"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert all(torch.equal(a, b) for a, b in zip(before, teacher.captioner.parameters(), strict=True))


def test_cached_attention_is_taken_in_place_of_the_teacher(
    teacher: CaptionerGrounder, make_captioner: Make, batch: Batch
) -> None:
    model = make_captioner()
    live = Distillation(teacher=teacher)(Context(model, batch))["distillation"]
    stored = replace(batch, cached={"scan": teacher.attention(batch)})
    cached = Distillation(DistillationOptions(cached="scan"))
    assert torch.allclose(cached(Context(model, stored))["distillation"], live)
    with pytest.raises(BadRecipeError, match="scan"):
        cached(Context(model, batch))


def test_the_teacher_is_loaded_by_name_or_missed(teacher: CaptionerGrounder) -> None:
    asked: list[str] = []

    def load(name: str) -> CaptionerGrounder:
        asked.append(name)
        return teacher

    Distillation(DistillationOptions(teacher="runs/scan"), load_grounder=load)
    assert asked == ["runs/scan"]
    with pytest.raises(BadRecipeError, match="teacher"):
        Distillation()
    with pytest.raises(BadRecipeError, match="runs/scan"):
        Distillation(DistillationOptions(teacher="runs/scan"))


def test_a_batch_without_nouns_costs_nothing(teacher: CaptionerGrounder, make_captioner: Make, batch: Batch) -> None:
    bare = replace(batch, tags=torch.zeros_like(batch.tags))
    loss = Distillation(teacher=teacher)(Context(make_captioner(), bare))["distillation"]
    loss.backward()
    assert loss.item() == 0


def test_each_branch_learns_what_the_teacher_leaves_for_it(make_captioner: Make, batch: Batch) -> None:
    """Branch k: the teacher restricted to R_k and renormalised, weighted by its mass there; one word at a time."""
    model = make_captioner(attention=AttentionConfig(kind="distributed", branches=3, join="random"))
    assert isinstance(model.decoder.attention, DistributedAttention)
    model.decoder.attention.joined.fill_(3)  # as after training
    context = Context(model, batch)
    attention = context.first().attention  # (3, C, T, N)
    assert len(attention) == 3
    taught = torch.rand(len(batch), batch.words.shape[1], 7) * batch.regions.mask[batch.image_of].unsqueeze(1)
    taught = taught / taught.sum(-1, keepdim=True)
    objective = Distillation(DistillationOptions(cached="t", form="code"))
    cached = replace(batch, cached={"t": taught})
    again = Context(model, cached)
    made = objective(again)["distillation"]
    losses = []
    for c in range(len(batch)):
        for t in range(batch.words.shape[1]):
            if batch.tags[c, t] != WordKind.NOUN or batch.words[c, t] == 0:
                continue
            left = set(batch.regions.mask[batch.image_of[c]].nonzero().flatten().tolist())
            total = mass = 0.0
            for k in range(3):
                share = sum(float(taught[c, t, n]) for n in left)
                target = {n: float(taught[c, t, n]) / share for n in left}
                own = sum(p * math.log(p / float(attention[k, c, t, n])) for n, p in target.items())
                total, mass = total + share * own, mass + share
                left -= {int(attention[k, c, t].argmax())}
            losses.append(total / mass)
    assert losses
    assert float(made) == pytest.approx(sum(losses) / len(losses), rel=1e-4)


def test_a_teacher_sure_of_one_region_teaches_the_first_branch_alone() -> None:
    teacher = torch.tensor([[[1.0, 0.0, 0.0]]])
    seen = torch.tensor([[[[True, True, True]]], [[[False, True, True]]]])
    left, mass = what_is_left(teacher, seen)
    assert mass.flatten().tolist() == [1.0, 0.0]
    assert left[0, 0, 0].tolist() == [1.0, 0.0, 0.0]
    assert torch.isfinite(left).all()
