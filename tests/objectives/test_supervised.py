"""Objectives that learn from human boxes, against hand-worked numbers and plain formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from deixis.captioning import Captioner, EncoderConfig
from deixis.data.batch import Batch, PhraseBoxes
from deixis.errors import BadRecipeError
from deixis.objectives import Context, Grounding, RegionClassification, Supervision, SupervisionOptions
from deixis.objectives.supervision import attention_loss
from deixis.objectives.targets import word_targets

Make = Callable[..., Captioner]


def test_losses_by_hand() -> None:
    attention = torch.tensor([[0.5, 0.25, 0.25, 0.0]])
    right = torch.tensor([[True, True, False, False]])
    half, quarter = 0.6931472, 1.3862944
    assert attention_loss(attention, right, "nll").item() == pytest.approx(half + quarter)  # eq. 16
    assert attention_loss(attention, right, "marginal").item() == pytest.approx(0.2876821)  # -log .75
    expected = 0.5 * (torch.tensor(0.5 / 0.5).log() + torch.tensor(0.5 / 0.25).log())
    assert attention_loss(attention, right, "kl").item() == pytest.approx(expected.item())


def test_targets_respect_frames_padding_and_the_threshold(batch: Batch, with_boxes: Callable[[Batch], Batch]) -> None:
    boxed = with_boxes(batch)
    targets = word_targets(boxed, "test")
    for phrase in range(len(boxed)):
        assert int(targets.overlap[phrase].argmax()) == phrase % 4
        assert targets.best()[phrase].nonzero().flatten().tolist() == [phrase % 4]
    assert (targets.overlap[batch.image_of == 1][:, -2:] == 0).all()  # padding
    assert boxed.phrase_boxes is not None
    elsewhere = replace(boxed, phrase_boxes=replace(boxed.phrase_boxes, frame=torch.ones(6, 1, dtype=torch.long)))
    assert not word_targets(elsewhere, "test").positive().any()


@pytest.mark.parametrize("loss", ["nll", "marginal", "kl"])
@pytest.mark.parametrize("which", ["all", "best"])
def test_supervision_by_formula_and_it_moves_the_attention(
    loss: str, which: str, make_captioner: Make, batch: Batch, with_boxes: Callable[[Batch], Batch]
) -> None:
    boxed, model = with_boxes(batch), make_captioner()
    objective = Supervision(SupervisionOptions(regions=which, loss=loss))  # type: ignore[arg-type]
    value = objective(Context(model, boxed))["supervision"]
    attention = model.decode(model.encode(batch.regions), batch.words, batch.image_of).attention[0]
    expected = []
    for phrase in range(len(boxed)):
        row = attention[phrase, 0]
        overlap = word_targets(boxed, "test").overlap[phrase]
        right = [i for i in range(7) if overlap[i] > 0.5] if which == "all" else [phrase % 4]
        if loss == "nll":
            expected.append(-sum(row[i].log() for i in right))
        elif loss == "marginal":
            expected.append(-torch.stack([row[i] for i in right]).sum().log())
        else:
            expected.append(sum((1 / len(right)) * ((1 / len(right)) / row[i]).log() for i in right))
    assert torch.allclose(value, torch.stack(expected).mean(), atol=1e-5)  # type: ignore[arg-type]
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(30):
        now = objective(Context(model, boxed))["supervision"]
        optimizer.zero_grad()
        now.backward()
        optimizer.step()
    assert now.item() < 0.6 * value.item()


def test_region_classification_and_grounding_by_formula(
    make_captioner: Make, batch: Batch, with_boxes: Callable[[Batch], Batch]
) -> None:
    boxed = with_boxes(batch)
    model = make_captioner(encoder=EncoderConfig(similarity="learned"))
    context = Context(model, boxed)
    logits = context.encoded().class_logits
    assert logits is not None
    targets = word_targets(boxed, "test")
    classify, ground = [], []
    for phrase in range(len(boxed)):
        image, label = int(targets.image[phrase]), int(targets.label[phrase])
        right = (targets.overlap[phrase] > 0.5).nonzero().flatten().tolist()
        classify += [-logits[image, i].log_softmax(0)[label] for i in right]
        real = batch.regions.mask[image]
        over = logits[image, :, label].masked_fill(~real, -torch.inf).log_softmax(0)
        ground.append(-sum(over[i] for i in right))
    losses = RegionClassification()(context)
    assert torch.allclose(losses["region_classification"], torch.stack(classify).mean(), atol=1e-5)
    assert 0 <= losses["_region_accuracy"].item() <= 1
    assert torch.allclose(Grounding()(context)["grounding"], torch.stack(ground).mean(), atol=1e-5)  # type: ignore[arg-type]


def test_words_without_a_fitting_region_or_class_do_not_count(
    make_captioner: Make, batch: Batch, with_boxes: Callable[[Batch], Batch]
) -> None:
    boxed = with_boxes(batch)
    assert boxed.phrase_boxes is not None
    away = PhraseBoxes(
        boxed.phrase_boxes.boxes + 5000, boxed.phrase_boxes.mask, boxed.phrase_boxes.frame, torch.full((6,), -1)
    )
    model = make_captioner(encoder=EncoderConfig(similarity="learned"))
    for objective in (Supervision(), RegionClassification(), Grounding()):
        losses = objective(Context(model, replace(boxed, phrase_boxes=away)))
        assert all(value.item() == 0 for value in losses.values())


def test_without_boxes_or_classifiers_the_recipe_is_to_blame(
    make_captioner: Make, batch: Batch, with_boxes: Callable[[Batch], Batch]
) -> None:
    with pytest.raises(BadRecipeError, match=r"data\.supervision"):
        Supervision()(Context(make_captioner(), batch))
    with pytest.raises(BadRecipeError, match="similarity: learned"):
        Grounding()(Context(make_captioner(), with_boxes(batch)))
