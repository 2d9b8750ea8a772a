from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from deixis.data.batch import Batch, RegionBatch, WordKind
from deixis.data.collate import EncodedCaption, EncodedExample
from deixis.data.sizes import InputSizes
from deixis.grounding.base import real_words
from deixis.grounding.infoground import InfoGround, InfoGroundConfig, MaskedMlp
from deixis.objectives import info_nce
from deixis.objectives.base import Context
from deixis.objectives.info_nce import (
    ImageContrast,
    ImageContrastOptions,
    LanguageContrast,
    LanguageContrastOptions,
    at_most,
    image_losses,
)
from deixis.text.tokens import tokenise
from deixis.text.vocabulary import END, UNKNOWN, Entry, Vocabulary
from deixis.text.word_encoders import WordEncoderConfig
from deixis.types import Phrase, Regions, Sentence

VOCABULARY = Vocabulary(
    [
        Entry("a", 9, "DT"),
        Entry("dog", 8, "NN", "dog", True),
        Entry("runs", 7, "VBZ"),
        Entry("red", 6, "JJ"),
        Entry("cat", 5, "NN", "cat", True),
        Entry("horse", 4, "NN", "horse", True),
    ]
)
A, DOG, RUNS, RED, CAT, HORSE = range(4, 10)
NOUN, ADJECTIVE = WordKind.NOUN, WordKind.ADJECTIVE
KINDS = {DOG: NOUN, CAT: NOUN, HORSE: NOUN, RUNS: WordKind.VERB, RED: ADJECTIVE, UNKNOWN: NOUN}


def infoground(kind: str = "contextual", **options: Any) -> InfoGround:
    torch.manual_seed(0)
    encoder = WordEncoderConfig(kind=kind, pretrained=False, width=8, layers=1, heads=2)
    config = InfoGroundConfig(width=6, encoder=encoder, **options)
    return InfoGround(config, InputSizes(words=len(VOCABULARY), features=5), VOCABULARY).eval()


def batch_of(images: int = 3, regions: int = 4, words: list[list[int]] | None = None) -> Batch:
    rng = torch.Generator().manual_seed(1)
    rows = words or [[A, DOG, RUNS, END], [A, RED, CAT, END], [RUNS, END, 0, 0], [A, RED, UNKNOWN, END]]
    boxes = torch.rand(images, regions, 4, generator=rng)
    return Batch(
        regions=RegionBatch(
            ids=tuple(map(str, range(images))),
            features=torch.randn(images, regions, 5, generator=rng),
            boxes=torch.cat([boxes[..., :2], boxes[..., :2] + boxes[..., 2:]], -1),
            mask=torch.ones(images, regions, dtype=torch.bool),
            sizes=torch.full((images, 2), 3.0),
            objectness=torch.rand(images, regions, generator=rng),
            frame=torch.zeros(images, regions, dtype=torch.long),
        ),
        words=torch.tensor(rows),
        image_of=torch.arange(len(rows)) % images,
        tags=torch.tensor([[KINDS.get(word, WordKind.OTHER) for word in row] for row in rows]),
        caption_ids=tuple(f"{at % images}#{at // images}" for at in range(len(rows))),
    )


def padded(batch: Batch) -> Batch:
    """The same batch with three regions and two words of padding, filled with what must not matter."""
    regions = batch.regions
    junk = torch.full((len(regions), 3, 5), 7.0)
    return replace(
        batch,
        regions=replace(
            regions,
            features=torch.cat([regions.features, junk], 1),
            boxes=torch.cat([regions.boxes, junk[..., :4]], 1),
            mask=torch.cat([regions.mask, torch.zeros(len(regions), 3, dtype=torch.bool)], 1),
            objectness=torch.cat([regions.objectness, junk[..., 0]], 1),
            frame=torch.cat([regions.frame, junk[..., 0].long()], 1),
        ),
        words=torch.nn.functional.pad(batch.words, (0, 2)),
        tags=torch.nn.functional.pad(batch.tags, (0, 2)),
    )


def phi(model: InfoGround, word: Tensor, regions: Tensor) -> float:
    """Equations 6 and 7 for one encoded word (W,) and the regions of one image (N, F), written out."""
    query, value = model.query.layers(word[None])[0], model.word_value.layers(word[None])[0]
    scores = [float(query @ model.key.layers(region[None])[0]) / math.sqrt(len(query)) for region in regions]
    total = sum(math.exp(score) for score in scores)
    attended = torch.zeros_like(value)
    for score, region in zip(scores, regions, strict=True):
        attended += math.exp(score) / total * model.region_value.layers(region[None])[0]
    return float(value @ attended)


@pytest.mark.parametrize("hidden_layers", [0, 1, 2])
def test_the_image_loss_is_equation_8(hidden_layers: int) -> None:
    model, batch = infoground(hidden_layers=hidden_layers), batch_of()
    with torch.no_grad():
        losses = ImageContrast()(Context(model, batch))
        encoded = model.encoder(batch.words, real_words(batch))
        means, words = [], []
        for caption, places in enumerate([[1], [1, 2], [], [1]]):  # known nouns and adjectives
            each = []
            for place in places:
                values = [phi(model, encoded[caption, place], regions) for regions in batch.regions.features]
                own = math.exp(values[int(batch.image_of[caption])])
                each.append(-math.log(own / sum(map(math.exp, values))))
            words += each
            means += [sum(each) / len(each)] if each else []
    assert float(losses["image_contrast"]) == pytest.approx(sum(means) / 3, abs=1e-5)
    assert float(losses["_bound"]) == pytest.approx(math.log(3) - sum(words) / 4, abs=1e-5)


@dataclass
class ToyModel:
    """Guesses by a table: what may stand at a place does not depend on the caption."""

    name: str = "toy"
    words: tuple[str, ...] = VOCABULARY.words
    vocabulary: Vocabulary = VOCABULARY
    moved: tuple[str, ...] = ()

    def to(self, device: torch.device) -> None:
        self.moved += (device.type,)

    def probabilities(self, captions: Any, places: Any, *, hide: bool) -> Tensor:
        p = {"dog": 0.4, "cat": 0.3, "horse": 0.2} if hide else {"dog": 0.9, "cat": 0.09, "horse": 0.01}
        row = torch.tensor([p.get(word, 0.0) for word in self.words])
        return row.repeat(len(captions), 1)


def language(monkeypatch: pytest.MonkeyPatch, batch: Batch, **options: Any) -> LanguageContrast:
    monkeypatch.setattr(info_nce, "load_language_model", lambda name: ToyModel())
    captions: dict[str, list[EncodedCaption]] = {}
    for row, tags, name in zip(batch.words.tolist(), batch.tags.tolist(), batch.caption_ids, strict=True):
        length = row.index(END)
        captions.setdefault(name.split("#")[0], []).append(
            EncodedCaption(tuple(row[: length + 1]), tuple(tags[:length]))
        )
    examples = tuple(EncodedExample(image, tuple(own), ()) for image, own in captions.items())
    data = SimpleNamespace(train=SimpleNamespace(examples=examples))
    return LanguageContrast(LanguageContrastOptions(**{"candidates": 3, "keep": 2} | options), data, VOCABULARY)


@pytest.mark.parametrize("kind", ["plausible", "re-ranked"])
def test_the_language_loss_is_equation_9(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = infoground(), batch_of()
    objective = language(monkeypatch, batch, negatives=kind)
    with torch.no_grad():
        loss = float(objective(Context(model, batch))["language_contrast"])
        expected = []
        for caption, place in ((0, 1), (1, 2)):  # the captions with a known noun
            values = []
            own = int(batch.words[caption, place])
            for noun in [own, *({DOG, CAT, HORSE} - {own})]:
                words = batch.words[caption : caption + 1].clone()
                words[0, place] = noun
                encoded = model.encoder(words, real_words(batch)[caption : caption + 1])
                values.append(phi(model, encoded[0, place], batch.regions.features[int(batch.image_of[caption])]))
            expected.append(-math.log(math.exp(values[0]) / sum(map(math.exp, values))))
    assert loss == pytest.approx(sum(expected) / 2, abs=1e-5)


def test_re_ranking_chooses_other_negatives_than_plausibility(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of()
    for kind, best in (("plausible", DOG), ("re-ranked", HORSE)):
        table = language(monkeypatch, batch, negatives=kind, candidates=3, keep=1).table
        assert table is not None
        assert dict(zip(table.ids, table.words[:, 0].tolist(), strict=True))["1#0"] == best  # its own noun is the cat


def test_random_negatives_are_nouns_of_other_images(monkeypatch: pytest.MonkeyPatch) -> None:
    model = infoground("embedding")
    batch = batch_of(images=2, words=[[A, DOG, END], [A, CAT, END], [A, HORSE, END]])  # dog and horse share an image
    objective = language(monkeypatch, batch, negatives="random", keep=25)
    context = Context(model, batch, generator=torch.Generator().manual_seed(0))
    words, mask, of = objective._random(model, context)
    features = model.encoder(batch.words, real_words(batch))[:, 1]  # (C, W)
    assert of.tolist() == [0, 1, 2]
    assert mask.sum(1).tolist() == [2, 3, 2]
    torch.testing.assert_close(words[0, :2], features[[0, 1]])
    torch.testing.assert_close(words[2, :2], features[[2, 1]])
    assert {tuple(row) for row in words[1, 1:3].tolist()} == {tuple(features[0].tolist()), tuple(features[2].tolist())}
    assert torch.isfinite(objective(context)["language_contrast"])


@pytest.mark.parametrize("kind", ["random", "plausible", "re-ranked"])
def test_every_caption_of_a_batch_gets_negatives(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = infoground("embedding")
    batch = batch_of(images=2, words=[[A, DOG, END], [A, CAT, END], [A, HORSE, END]])  # dog and horse share an image
    objective = language(monkeypatch, batch, negatives=kind)
    context = Context(model, batch, generator=torch.Generator().manual_seed(0))
    _, mask, of = objective._random(model, context) if kind == "random" else objective._from_table(model, batch)
    assert of.tolist() == [0, 1, 2]  # whichever of its captions an epoch has drawn
    assert mask[:, 1].all()


@pytest.mark.parametrize("kind", ["random", "plausible"])
def test_nouns_said_of_the_photo_are_no_negatives(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = infoground("embedding")
    # the first photo has a dog and a cat, the second a horse and a dog: a dog is untrue of neither
    batch = batch_of(images=2, words=[[A, DOG, END], [A, HORSE, END], [A, CAT, END], [A, DOG, END]])
    for allowed in (False, True):
        objective = language(monkeypatch, batch, negatives=kind, keep=2, allow_said=allowed)
        context = Context(model, batch, generator=torch.Generator().manual_seed(0))
        words, mask, of = objective._random(model, context) if kind == "random" else objective._from_table(model, batch)
        table = {tuple(row.tolist()): at for at, row in enumerate(model.encoder.embed.weight)}  # type: ignore[union-attr,arg-type]
        used = [
            {table[tuple(row.tolist())] for row in rows[1:][real[1:]]} for rows, real in zip(words, mask, strict=True)
        ]
        assert of.tolist() == [0, 1, 2, 3]
        if not allowed:
            assert used == [{HORSE}, {CAT}, {HORSE}, {CAT}]
        else:
            assert DOG in used[1]


def test_negatives_are_found_on_the_training_device_with_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    used = ToyModel()
    batch, told = batch_of(), list[tuple[str, int, int]]()
    data = language(monkeypatch, batch, negatives="none")  # only to have load_language_model replaced
    assert data.table is None
    monkeypatch.setattr(info_nce, "load_language_model", lambda name: used)
    example = EncodedExample("x", (EncodedCaption((A, DOG, END), (WordKind.OTHER, NOUN)),), ())
    options = LanguageContrastOptions(negatives="plausible", candidates=3, keep=2, seed=77)
    LanguageContrast(
        options,
        SimpleNamespace(train=SimpleNamespace(examples=(example,))),
        VOCABULARY,
        infoground().to("meta"),
        lambda *done: told.append(done),
    )
    assert used.moved == ("meta",)
    assert told == [("finding plausible negatives", 1, 1)]


def test_words_that_taggers_call_nouns_are_not_contrasted() -> None:
    words = Vocabulary([*VOCABULARY.entries, Entry("has", 3, "NN")])
    torch.manual_seed(0)
    encoder = WordEncoderConfig(kind="embedding", pretrained=False, width=8)
    model = InfoGround(InfoGroundConfig(width=6, encoder=encoder), InputSizes(words=len(words), features=5), words)
    batch = replace(batch_of(words=[[DOG, words.id("has"), RED, END]]), tags=torch.tensor([[NOUN, NOUN, ADJECTIVE, 0]]))
    assert model.content_words(batch).tolist() == [[True, False, True, False]]
    assert model.nouns(batch).tolist() == [[True, False, False, False]]


@pytest.mark.parametrize("kind", ["embedding", "contextual"])
def test_padding_changes_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of()
    model = infoground(kind, location=True)
    objectives = [ImageContrast(), language(monkeypatch, batch)]
    for training in (False, True):  # batch statistics must not see padding either
        model.train(training)
        for dropout in model.modules():
            if isinstance(dropout, torch.nn.Dropout | torch.nn.MultiheadAttention | torch.nn.TransformerEncoderLayer):
                dropout.eval()
        for objective in objectives:
            for name, value in objective(Context(model, batch)).items():
                torch.testing.assert_close(objective(Context(model, padded(batch)))[name], value)
    attention = model.eval().attention(padded(batch))
    torch.testing.assert_close(attention[:, :3, :4], model.attention(batch)[:, :3])
    assert not attention[:, :, 4:].any()


def test_padding_gets_no_gradient() -> None:
    model, batch = infoground(), padded(batch_of())
    features = batch.regions.features.requires_grad_()
    ImageContrast()(Context(model, batch))["image_contrast"].backward()
    assert features.grad is not None
    assert features.grad[:, :4].abs().sum() > 0
    assert not features.grad[:, 4:].any()


def test_batch_equals_single() -> None:
    model, batch = infoground(), batch_of()
    together, attention = model.match(batch), model.attention(batch)
    for at in range(4):
        image = int(batch.image_of[at])
        regions = batch.regions
        one = replace(
            batch,
            regions=RegionBatch(
                regions.ids[image : image + 1],
                *(
                    getattr(regions, name)[image : image + 1]
                    for name in ("features", "boxes", "mask", "sizes", "objectness", "frame")
                ),
            ),
            words=batch.words[at : at + 1],
            tags=batch.tags[at : at + 1],
            image_of=torch.zeros(1, dtype=torch.long),
        )
        torch.testing.assert_close(model.match(one), together[at : at + 1])
        torch.testing.assert_close(model.attention(one), attention[at : at + 1])


def test_captions_of_one_image_are_no_negatives_of_each_other() -> None:
    model = infoground()
    one = batch_of(images=1, words=[[A, DOG, END], [A, CAT, END]])
    losses, images = image_losses(model, one, model.content_words(one))
    assert images == 1
    assert losses.tolist() == [0.0, 0.0]


def test_at_most_six_words_of_a_caption_count() -> None:
    chosen = torch.tensor([[True] * 9, [True, False] * 4 + [True]])
    rng = torch.Generator().manual_seed(0)
    draws = torch.stack([at_most(chosen, 6, rng) for _ in range(50)])
    assert (draws.sum(2) == torch.tensor([6, 5])).all()
    assert not (draws & ~chosen).any()
    assert draws.any(0)[0].all()  # every word gets its turn
    assert ImageContrastOptions().words == 6


def test_one_row_alone_is_normalised_by_the_running_statistics() -> None:
    torch.manual_seed(0)
    mlp = MaskedMlp(3, 2, 1).train()
    rows = torch.randn(1, 2, 3)
    alone = torch.tensor([[True, False]])
    expected = MaskedMlp(3, 2, 1)
    expected.load_state_dict(mlp.state_dict())
    torch.testing.assert_close(mlp(rows, alone), expected.eval()(rows, alone))
    assert mlp(rows, torch.zeros(1, 2, dtype=torch.bool)).tolist() == [[[0, 0], [0, 0]]]


def test_training_raises_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    model = infoground("embedding").train()
    batch = batch_of(words=[[A, DOG, END], [A, CAT, END], [A, HORSE, END]])
    objectives = [ImageContrast(), language(monkeypatch, batch)]
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    bounds = []
    for step in range(150):
        losses: dict[str, Tensor] = {}
        context = Context(model, batch, step)
        for objective in objectives:
            losses |= objective(context)
        optimizer.zero_grad()
        (losses["image_contrast"] + losses["language_contrast"]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        bounds.append(float(losses["_bound"]))
    assert bounds[-1] > max(bounds[0], 0.9 * math.log(3))
    assert bounds[-1] <= math.log(3)
    assert float(losses["_own_noun_first"]) == 1.0


def test_it_grounds_phrases() -> None:
    model = infoground()
    torch.manual_seed(3)
    boxes = torch.tensor([[0.0, 0, 4, 4], [2, 2, 8, 8], [0, 0, 10, 10]])
    regions = Regions(boxes, torch.randn(3, 5), torch.rand(3), (10, 10), "x")
    sentence = Sentence("a red dog runs 🐕", tokenise("a red dog runs 🐕"), (Phrase(0, 3, head=2), Phrase(4, 5)))
    known, strange = model.ground(regions, sentence).phrases
    assert known.boxes == known.ranked[:1]
    assert sum(known.ranked_scores) == pytest.approx(1, abs=1e-5)
    assert not strange.found
