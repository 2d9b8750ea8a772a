"""The quick decoder against the textbook one, and against the papers' equations written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest
import torch
from torch import Tensor

from deixis.captioning import (
    Attend,
    AttentionConfig,
    Captioner,
    CaptionerConfig,
    DecoderConfig,
    EncoderConfig,
    InputSizes,
    ScheduledSampling,
)
from deixis.captioning.model.encoder import locations
from deixis.data.batch import Batch, RegionBatch
from deixis.objectives import Context, CrossEntropy
from deixis.text.vocabulary import BEGIN

Make = Callable[..., Captioner]
FORMS = ["gvd", "updown", "cyclical"]
KINDS = [
    AttentionConfig(),
    AttentionConfig(kind="distributed", branches=3),
    AttentionConfig(kind="distributed", branches=2, language_state="shared", state="previous"),
    AttentionConfig(kind="multi_head", branches=3),
]


@pytest.mark.parametrize("form", FORMS)
def test_equals_the_textbook(form: str, make_captioner: Make, batch: Batch, textbook: ModuleType) -> None:
    sizes = InputSizes(words=24, features=12)
    ours = make_captioner(sizes=sizes, decoder=DecoderConfig(form=form))  # type: ignore[arg-type]
    theirs = textbook.TextbookCaptioner(12, 24, 16, form=form).eval()
    theirs.load_state_dict(ours.state_dict())
    decoded = ours.decode(ours.encode(batch.regions), batch.words, batch.image_of)
    rows = batch.image_of
    inputs = (batch.regions.features[rows], locations(batch.regions)[rows], batch.regions.mask[rows], batch.words)
    logs, attention = theirs(*inputs)
    assert torch.allclose(decoded.log_probs[0][decoded.mask], logs[decoded.mask], atol=1e-5)
    assert torch.allclose(decoded.attention[0][decoded.mask], attention[decoded.mask], atol=1e-6)
    assert not decoded.attention[0][~decoded.mask].any()
    loss = CrossEntropy()(Context(ours, batch))["cross_entropy"]
    other = theirs.loss(*inputs)
    assert torch.allclose(loss, other, atol=1e-6)
    loss.backward()
    other.backward()
    for (name, mine), book in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert mine.grad is not None, name
        assert torch.allclose(mine.grad, book.grad, atol=1e-6), name


def _lstm(x: Tensor, h: Tensor, c: Tensor, cell: torch.nn.LSTMCell) -> tuple[Tensor, Tensor]:
    """Hochreiter's gates for one row, each on its own."""
    width = len(h)
    gate = [
        cell.weight_ih[k * width : (k + 1) * width] @ x
        + cell.bias_ih[k * width : (k + 1) * width]
        + cell.weight_hh[k * width : (k + 1) * width] @ h
        + cell.bias_hh[k * width : (k + 1) * width]
        for k in range(4)
    ]
    c = torch.sigmoid(gate[1]) * c + torch.sigmoid(gate[0]) * torch.tanh(gate[2])
    return torch.sigmoid(gate[3]) * torch.tanh(c), c


@pytest.mark.parametrize("previous", [False, True])
@pytest.mark.parametrize("project", [False, True])
def test_equations_1_to_3_of_cyclical(previous: bool, project: bool, make_captioner: Make, batch: Batch) -> None:
    attention = AttentionConfig(project_regions=project, state="previous" if previous else "current")
    model = make_captioner(attention=attention)
    decoder, encoded = model.decoder, model.encode(batch.regions)
    decoded = model.decode(encoded, batch.words, batch.image_of)
    row = 3
    image = int(batch.image_of[row])
    r, real = encoded.regions[image], encoded.mask[image]
    h1 = c1 = h2 = c2 = torch.zeros(16)
    word = BEGIN
    for t in range(int(decoded.mask[row].sum())):
        x = torch.cat([decoder.embedding.weight[word], encoded.pooled[image], h2])
        old = h1
        h1, c1 = _lstm(x, h1, c1, decoder.attention_lstm)  # eq. 1
        asked = old if previous else h1
        key = decoder.attention.key(r)  # type: ignore[operator]
        z = torch.stack([decoder.attention.score @ torch.tanh(decoder.attention.query.weight @ asked + k) for k in key])  # type: ignore[operator]
        alpha = torch.softmax(z.masked_fill(~real, -torch.inf), 0)  # eq. 2
        h2, c2 = _lstm(torch.cat([alpha @ r, h1]), h2, c2, decoder.language_lstm)  # eq. 3
        logs = torch.log_softmax(decoder.output.weight @ h2 + decoder.output.bias, 0)
        assert torch.allclose(decoded.attention[0, row, t], alpha, atol=1e-5)
        assert torch.allclose(decoded.log_probs[0, row, t], logs, atol=1e-5)
        word = int(batch.words[row, t])


def test_map_cells_are_added_to_the_attended_region(make_captioner: Make, batch: Batch) -> None:
    """Distributed eq. 4: f_t = r_t + att_img(f_c), at the first step."""
    model = make_captioner(encoder=EncoderConfig(map="feature_map"), decoder=DecoderConfig(form="gvd"))
    decoder, encoded = model.decoder, model.encode(batch.regions)
    assert encoded.cells is not None
    assert decoder.cell_attention is not None
    decoded = model.decode(encoded, batch.words, batch.image_of)
    x = torch.cat([decoder.embedding.weight[BEGIN], encoded.pooled[0]])
    h1, _ = _lstm(x, torch.zeros(16), torch.zeros(16), decoder.attention_lstm)
    seen = torch.zeros(16)
    for attention, values in [(decoder.attention, encoded.regions[0]), (decoder.cell_attention, encoded.cells[0])]:
        z = torch.tanh(attention.key(values) + attention.query(h1)) @ attention.score  # type: ignore[operator]
        seen = seen + z.softmax(0) @ values
    h2, _ = _lstm(torch.cat([seen, h1]), torch.zeros(16), torch.zeros(16), decoder.language_lstm)
    assert torch.allclose(decoded.hidden[0, 0, 0], h2, atol=1e-6)


@pytest.mark.parametrize("attention", KINDS, ids=lambda kind: f"{kind.kind}-{kind.language_state}")
@pytest.mark.parametrize("cells", ["none", "feature_map"])
def test_padding_batching_and_order_do_not_matter(
    attention: AttentionConfig, cells: str, make_captioner: Make, batch: Batch
) -> None:
    model = make_captioner(attention=attention, encoder=EncoderConfig(map=cells)).train()  # type: ignore[arg-type]
    model.decode(model.encode(batch.regions), batch.words, batch.image_of)  # branches join
    model.eval()
    decoded = model.decode(model.encode(batch.regions), batch.words, batch.image_of)
    whole = decoded.log_probs
    # more padding, of words and of regions
    padded = torch.nn.functional.pad(batch.words, (0, 2))
    more = model.decode(model.encode(_padded(batch.regions, 3)), padded, batch.image_of)
    assert torch.allclose(more.log_probs[:, :, :-2][:, decoded.mask], whole[:, decoded.mask], atol=1e-5)
    assert torch.allclose(
        more.attention[:, :, :-2, :-3][:, decoded.mask], decoded.attention[:, decoded.mask], atol=1e-5
    )
    assert (more.attention[..., -3:] == 0).all()
    # shuffled captions
    order = torch.tensor([4, 0, 3, 1, 5, 2])
    mixed = model.decode(model.encode(batch.regions), batch.words[order], batch.image_of[order])
    assert torch.allclose(mixed.log_probs, whole[:, order], atol=1e-5)
    # one by one
    for row in range(len(batch)):
        image = int(batch.image_of[row])
        alone = model.decode(model.encode(_one(batch.regions, image)), batch.words[row : row + 1])
        assert torch.allclose(alone.log_probs[:, 0], whole[:, row], atol=1e-5)


def _padded(regions: RegionBatch, count: int) -> RegionBatch:
    def grow(value: Tensor, fill: float = 3.0) -> Tensor:
        return torch.cat([value, torch.full_like(value[:, :count], fill)], 1)

    assert regions.class_probs is not None
    return replace(
        regions,
        features=grow(regions.features),
        boxes=grow(regions.boxes),
        mask=torch.cat([regions.mask, torch.zeros_like(regions.mask[:, :count])], 1),
        objectness=grow(regions.objectness, 0.0),
        frame=grow(regions.frame, 0),
        class_probs=grow(regions.class_probs),
        regionness=None,
        word_probs=None,
    )


def _one(regions: RegionBatch, image: int) -> RegionBatch:
    rows = slice(image, image + 1)
    cut = {
        name: value[rows]
        for name in regions.__dataclass_fields__
        if isinstance(value := getattr(regions, name), Tensor | tuple)
    }
    return replace(regions, **cut)  # type: ignore[arg-type]


def test_mapping_regions_first_changes_nothing(make_captioner: Make, batch: Batch) -> None:
    model = make_captioner()
    encoded = model.encode(batch.regions)
    results = []
    for uses in (0, 1000):
        memory = model.decoder.remember(encoded, uses)
        assert (memory.region_gates is None) == (uses == 0)
        gates = model.decoder.word_gates(memory, batch.words[:, :1].T)[0]
        results.append(model.decoder.step(memory, model.decoder.start(memory, 2), gates).hidden)
    assert torch.allclose(results[0], results[1], atol=1e-6)


@pytest.mark.parametrize("attention", [AttentionConfig(), AttentionConfig(kind="multi_head", branches=1)])
def test_given_weights_replace_the_attention(attention: AttentionConfig, make_captioner: Make, batch: Batch) -> None:
    """The decoder's own weights, given from outside, must give the decoder's own words."""
    model = make_captioner(attention=attention)
    encoded = model.encode(batch.regions)
    first = model.decode(encoded, batch.words, batch.image_of)
    again = model.decode(encoded, batch.words, batch.image_of, attend=Attend(first.attention[0]))
    assert torch.allclose(first.log_probs, again.log_probs, atol=1e-5)
    assert again.attention.shape[0] == 0
    other = model.decode(encoded, batch.words, batch.image_of, attend=Attend(first.attention[0].flip(-1)))
    assert not torch.allclose(first.log_probs, other.log_probs, atol=1e-4)


def test_scheduled_sampling_feeds_the_models_own_words(make_captioner: Make, batch: Batch) -> None:
    model = make_captioner()
    encoded = model.encode(batch.regions)
    with torch.no_grad():
        model.decoder.output.bias[7] = 1000.0  # whatever happens, word 7 is sampled
    fed = ScheduledSampling(1.0, torch.Generator().manual_seed(0))
    sampled = model.decode(encoded, batch.words, batch.image_of, feed=fed)
    sevens = model.decode(encoded, torch.full_like(batch.words, 7), batch.image_of)
    mask = batch.words != 0
    assert torch.allclose(sampled.hidden[:, mask], sevens.hidden[:, mask], atol=1e-5)
    some = ScheduledSampling(0.5, torch.Generator().manual_seed(1))
    half = model.decode(encoded, batch.words, batch.image_of, feed=some).hidden
    plain = model.decode(encoded, batch.words, batch.image_of).hidden
    fed_other = (half[0, :, 1] - plain[0, :, 1]).abs().amax(-1) > 1e-6
    assert 0 < int(fed_other.sum()) < len(batch)


def test_bf16_autocast_runs_and_stays_close(make_captioner: Make, batch: Batch) -> None:
    model = make_captioner()
    exact = CrossEntropy()(Context(model, batch))["cross_entropy"]
    with torch.autocast("cpu", torch.bfloat16):
        rough = CrossEntropy()(Context(model, batch))["cross_entropy"]
    rough.backward()
    assert abs(rough.item() - exact.item()) < 0.05


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["soft", "distributed", "multi_head"])
def test_regions_may_be_narrower_than_the_lstms(form: str, kind: str, batch: Batch) -> None:
    """Cyclical: regions of 512 and LSTMs of 1,024. One step written out; searching and training take the same path."""
    torch.manual_seed(3)
    config = CaptionerConfig(
        width=16,
        region_width=6,
        decoder=DecoderConfig(form=form, word_width=5),  # type: ignore[arg-type]
        attention=AttentionConfig(kind=kind, branches=2, project_regions=kind == "multi_head"),
        encoder=EncoderConfig(map="feature_map"),
    )
    sizes = InputSizes(words=24, features=12, classes=6, global_features=9, feature_map=8)
    model = Captioner(config, sizes).eval()
    encoded = model.encode(batch.regions)
    assert encoded.regions.shape[-1] == encoded.cells.shape[-1] == 6  # type: ignore[union-attr]
    assert encoded.pooled.shape[-1] == (6 if form == "updown" else 16)
    decoded = model.decode(encoded, batch.words, batch.image_of)
    decoded.cross_entropy(batch.words).sum().backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None for p in model.decoder.language_lstm.parameters())
    if kind == "soft":
        decoder, row = model.decoder, int(batch.image_of[0])
        word = decoder.embedding.weight[1]  # the beginning
        parts = [word, encoded.pooled[row], *([torch.zeros(16)] if form != "gvd" else [])]
        h, _ = decoder.attention_lstm(torch.cat(parts).unsqueeze(0))
        z = torch.tanh(decoder.attention.query.weight @ h[0] + encoded.regions[row]) @ decoder.attention.score  # type: ignore[operator]  # eq. 2
        weights = z.masked_fill(~batch.regions.mask[row], -torch.inf).softmax(0)
        torch.testing.assert_close(decoded.attention[0, 0, 0], weights)
    assert model.generate(batch.regions).words.shape[0] == len(batch.regions)
