"""Objectives that learn from human boxes, against hand-worked numbers and plain formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from deixis.captioning import Captioner, EncoderConfig
from deixis.data.batch import Batch, PhraseBatch, PhraseBoxes, RegionBatch
from deixis.errors import BadRecipeError
from deixis.objectives import Context, Grounding, RegionClassification, Supervision, SupervisionOptions
from deixis.objectives.supervision import attention_loss, supervised_loss
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


def test_gvds_mean_is_over_pairs_of_word_and_region() -> None:
    attention = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.1, 0.1, 0.1, 0.7]])
    right = torch.tensor([[True, True, False, False], [False, False, False, True]])
    words = torch.tensor([True, True])
    expected = -torch.tensor([0.5, 0.25, 0.7]).log().mean()  # three pairs, each alike
    assert supervised_loss(attention, right, words, "pairs").item() == pytest.approx(expected.item())
    assert supervised_loss(attention, right, words, "nll").item() == pytest.approx(1.5 * expected.item())
    only = torch.tensor([True, False])
    assert supervised_loss(attention, right, only, "pairs").item() == pytest.approx(1.0397208)  # (log 2 + log 4) / 2


def test_attention_on_frames_that_nobody_annotated_costs_nothing(
    make_captioner: Make, make_regions: Callable[..., RegionBatch], make_batch: Callable[..., Batch]
) -> None:
    """Two frames, one box on the first: only how the weight divides inside the first frame counts (GVD)."""
    regions = make_regions(images=1, count=6, frames=2)
    batch = make_batch(regions, each=1)
    boxes = PhraseBoxes(
        regions.boxes[0, :1].unsqueeze(0), torch.ones(1, 1).bool(), torch.zeros(1, 1).long(), -torch.ones(1).long()
    )
    one = torch.tensor([0])
    batch = replace(batch, phrases=PhraseBatch(one, one, one + 1, one), phrase_boxes=boxes)
    model = make_captioner()
    weights = Context(model, batch).first().attention[0, 0, 0]  # (N,)
    first = regions.frame[0] == 0
    right = word_targets(batch, "test").positive()[0]
    assert right.any()
    assert (right <= first).all()
    inside = weights / weights[first].sum()
    for loss, expected in (("pairs", -inside[right].log().mean()), ("nll", -inside[right].log().sum())):
        made = Supervision(SupervisionOptions(loss=loss))(Context(model, batch))["supervision"]  # type: ignore[arg-type]
        torch.testing.assert_close(made, expected)
    everywhere = Supervision(SupervisionOptions(frames="all"))(Context(model, batch))["supervision"]
    torch.testing.assert_close(everywhere, -weights[right].log().sum())
    assert first.sum() == 3  # the premise: there is a frame without a box


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
