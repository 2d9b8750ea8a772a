"""Cyclical training against eqs. 4-8 written out, and where its gradients go."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch

from deixis.captioning import AttentionConfig, Captioner, EncoderConfig, InputSizes
from deixis.captioning.model.encoder import locations
from deixis.data.batch import Batch, WordKind
from deixis.errors import BadRecipeError
from deixis.objectives import (
    AttentionConsistency,
    AttentionConsistencyOptions,
    Context,
    CrossEntropy,
    Cyclical,
    CyclicalOptions,
)

Make = Callable[..., Captioner]


@pytest.mark.parametrize("keys", ["shared", "regions"])
@pytest.mark.parametrize("words", ["all", "zero_loss", "zero_representation"])
@pytest.mark.parametrize("kind", ["linear", "mlp", "hidden"])
def test_reconstruction_by_formula(
    keys: str, words: str, kind: str, make_captioner: Make, batch: Batch, textbook: ModuleType
) -> None:
    """Localize argmax words (eq. 6), decode again from what was found with the textbook decoder (eqs. 7, 8)."""
    model = make_captioner(sizes=InputSizes(words=24, features=12))
    objective = Cyclical(model, CyclicalOptions(localizer=kind, words=words, keys=keys))  # type: ignore[arg-type]
    context = Context(model, batch)
    loss = objective(context)["reconstruction"]

    book = textbook.TextbookCaptioner(12, 24, 16).eval()
    book.load_state_dict(model.state_dict())
    rows = batch.image_of
    inputs = (batch.regions.features[rows], locations(batch.regions)[rows], batch.regions.mask[rows], batch.words)
    regions, _ = book.encoder(*inputs[:3])
    scored = book.decoder.attention.key(regions) if keys == "shared" else regions  # what eq. 2 scores
    logs, _ = book(*inputs)
    said = logs.argmax(-1)
    content = (batch.tags == WordKind.NOUN) | (batch.tags == WordKind.VERB)
    beta = torch.zeros(len(batch), 6, 7)
    for c in range(len(batch)):
        for t in range(6):
            e = book.decoder.embedding.weight[said[c, t]]
            if kind == "hidden":
                e = context.first().states[c, t]
            head = objective.localizer.region
            asked = head.weight @ e if kind != "mlp" else head(e)
            z = torch.stack([asked @ r for r in scored[c]])
            beta[c, t] = z.masked_fill(~inputs[2][c], -torch.inf).softmax(0)
            if words == "zero_representation" and not content[c, t]:
                beta[c, t] = 0
    if words != "zero_representation":
        real = (batch.words != 0).unsqueeze(-1)
        assert torch.allclose(context.shared["localized"] * real, beta * real, atol=1e-5)
    again, _ = book(*inputs, attend=beta)
    chosen = -again.gather(-1, batch.words.unsqueeze(-1)).squeeze(-1)
    counted = batch.words != 0
    if words == "zero_loss":
        counted = counted & content
    assert torch.allclose(loss, chosen[counted].mean(), atol=1e-5)


@pytest.mark.parametrize("kind", ["linear", "hidden"])
def test_gradients_stop_at_the_first_pass(kind: str, make_captioner: Make, batch: Batch) -> None:
    """Section 3.2: the reconstruction loss does not go back into the first decoding; localizer and regions learn."""
    model = make_captioner()
    objective = Cyclical(model, CyclicalOptions(localizer=kind))  # type: ignore[arg-type]
    context = Context(model, batch)
    first = context.first()
    first.packed_hidden.retain_grad()
    first.packed_states.retain_grad()
    first.attention.retain_grad()
    objective(context)["reconstruction"].backward()
    assert first.packed_hidden.grad is None
    assert first.packed_states.grad is None
    assert first.attention.grad is None
    for part in (objective.localizer.region, model.decoder.attention_lstm, model.decoder.language_lstm, model.encoder):
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in part.parameters()), part
    # the decoder's own attention was not used, but what it scores was
    attention = model.decoder.attention
    assert attention.key.weight.grad.any()  # type: ignore[operator,union-attr]
    assert all(p.grad is None or not p.grad.any() for p in (attention.score, attention.query.weight))  # type: ignore[operator]


def test_reconstruction_does_not_reach_keys_it_does_not_share(make_captioner: Make, batch: Batch) -> None:
    model = make_captioner()
    Cyclical(model, CyclicalOptions(keys="regions"))(Context(model, batch))["reconstruction"].backward()
    assert all(p.grad is None or not p.grad.any() for p in model.decoder.attention.parameters())


@pytest.mark.parametrize("kind", ["distributed", "multi_head"])
def test_keys_of_branches_and_heads_are_shared(kind: str, make_captioner: Make, batch: Batch) -> None:
    model = make_captioner(attention=AttentionConfig(kind=kind, branches=3))
    objective = Cyclical(model)
    encoded = model.encode(batch.regions)
    localized = objective.localize(model, encoded, batch, batch.words).regions
    asked = model.decoder.embedding(batch.words) @ objective.localizer.region.weight.T  # (C, T, A)
    weight, bias = model.decoder.attention.key.weight, model.decoder.attention.key.bias  # type: ignore[union-attr]
    keys = (encoded.regions @ weight.T + bias)[..., : asked.shape[-1]][batch.image_of]  # type: ignore[operator]  # of the first branch, or all
    z = (asked @ keys.transpose(1, 2)).masked_fill(~batch.regions.mask[batch.image_of].unsqueeze(1), -torch.inf)
    torch.testing.assert_close(localized, z.softmax(-1))


def test_a_warm_up_teaches_the_localizer_alone(make_captioner: Make, batch: Batch) -> None:
    model = make_captioner().train()
    objective, entropy = Cyclical(model, CyclicalOptions(warm_up=0.5)).train(), CrossEntropy()
    context = Context(model, batch, epoch=0.25)
    objective(context)["reconstruction"].backward(retain_graph=True)
    assert all(p.grad is None for p in model.parameters())
    assert all(p.grad is not None and p.grad.any() for p in objective.parameters())
    entropy(context)["cross_entropy"].backward()  # what other objectives teach still arrives
    assert all(p.grad is not None for p in model.decoder.language_lstm.parameters())
    model.zero_grad()
    objective(Context(model, batch, epoch=0.5))["reconstruction"].backward()
    assert all(p.grad is not None and p.grad.any() for p in model.decoder.language_lstm.parameters())


def test_losses_add_up_as_equation_8(make_captioner: Make, batch: Batch) -> None:
    """lambda_1 L_dec + lambda_2 L_rec: gradients of the sum are the sum of the gradients."""
    model = make_captioner()
    objective, entropy = Cyclical(model), CrossEntropy()

    def gradient(first: float, second: float) -> torch.Tensor:
        model.zero_grad()
        context = Context(model, batch)
        total = first * entropy(context)["cross_entropy"] + second * objective(context)["reconstruction"]
        total.backward()
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    assert torch.allclose(gradient(0.6, 0.4)[:500], (0.6 * gradient(1, 0) + 0.4 * gradient(0, 1))[:500], atol=1e-5)


def test_the_localizer_is_gone_when_answering(make_captioner: Make, batch: Batch) -> None:
    plain, model = make_captioner(), make_captioner()
    objective = Cyclical(model)
    names = set(model.state_dict())
    objective(Context(model, batch))["reconstruction"].backward()
    assert set(model.state_dict()) == names == set(plain.state_dict())
    assert {p.shape for p in objective.parameters()} == {torch.Size([16, 16])}  # one linear layer is all it adds
    called: list[str] = []
    handles = [m.register_forward_hook(lambda m, *_: called.append(type(m).__name__)) for m in objective.modules()]
    model.generate(batch.regions)
    for handle in handles:
        handle.remove()
    assert called == []


@pytest.mark.parametrize("cells", ["feature_map", "frames"])
def test_map_cells_and_frames_are_localized_too(
    cells: str, make_captioner: Make, make_regions: Callable[..., object], make_batch: Callable[..., Batch]
) -> None:
    batch = make_batch(make_regions(images=2, count=6, frames=3))
    model = make_captioner(encoder=EncoderConfig(map=cells))  # type: ignore[arg-type]
    objective = Cyclical(model)
    objective(Context(model, batch))["reconstruction"].backward()
    assert objective.localizer.cell is not None
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in objective.parameters())
    attention = model.decoder.cell_attention
    assert attention is not None
    assert attention.key.weight.grad.any()  # type: ignore[operator,union-attr]  # shared with the localizer
    assert all(p.grad is None or not p.grad.any() for p in (attention.score, attention.query.weight))


def test_accuracy_of_localizer_and_decoder(
    make_captioner: Make, batch: Batch, with_boxes: Callable[[Batch], Batch]
) -> None:
    model, boxed = make_captioner(), with_boxes(batch)
    objective = Cyclical(model)
    found = objective.accuracy(Context(model, boxed))
    attend = objective.localize(model, model.encode(batch.regions), batch, batch.words).regions
    hits = [float(int(attend[c, 0].argmax()) == c % 4) for c in range(len(batch))]
    assert found["localizer_accuracy"].item() == pytest.approx(sum(hits) / len(hits), abs=0.2)
    assert set(found) == {"localizer_accuracy", "decoder_accuracy"}


@pytest.mark.parametrize("direction", ["localizer||decoder", "decoder||localizer"])
def test_attention_consistency_by_formula(direction: str, make_captioner: Make, batch: Batch) -> None:
    model = make_captioner()
    cyclical = Cyclical(model)
    objective = AttentionConsistency(AttentionConsistencyOptions(direction=direction))  # type: ignore[arg-type]
    context = Context(model, batch)
    with pytest.raises(BadRecipeError, match="follow 'cyclical'"):
        objective(context)
    cyclical(context)
    loss = objective(context)["attention_consistency"]
    beta, alpha = context.shared["localized"].detach(), context.first().attention[0]
    p, q = (beta, alpha) if direction == "localizer||decoder" else (alpha, beta)
    terms = torch.where(p > 0, p * (p / q.clamp(min=1e-30)).log(), 0.0).sum(-1)
    assert torch.allclose(loss, terms[batch.words != 0].mean(), atol=1e-5)
    loss.backward()
    assert all(p.grad is None for p in cyclical.parameters())  # only the decoder's attention moves
    assert model.decoder.attention.query.weight.grad is not None


def test_training_makes_localizer_and_decoder_learn(make_captioner: Make, batch: Batch) -> None:
    model = make_captioner()
    objective, entropy = Cyclical(model), CrossEntropy()
    optimizer = torch.optim.Adam([*model.parameters(), *objective.parameters()], 0.03)
    losses = []
    for _ in range(40):
        context = Context(model, batch)
        parts = entropy(context) | objective(context)
        loss = 0.5 * parts["cross_entropy"] + 0.5 * parts["reconstruction"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append([parts["cross_entropy"].item(), parts["reconstruction"].item()])
    assert losses[-1][0] < 0.5 * losses[0][0]
    assert losses[-1][1] < 0.5 * losses[0][1]
