from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from deixis.captioning import AttentionConfig, Captioner, CaptionerGrounder
from deixis.data.batch import Batch, WordKind
from deixis.errors import BadRecipeError
from deixis.objectives import Context, Distillation, DistillationOptions
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
