"""The lite grounder: prior and presence against plain formulas, masks, and the interface of grounders."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from deixis.data.batch import Batch, PhraseBatch, RegionBatch
from deixis.data.pad import pad_regions
from deixis.data.sizes import InputSizes
from deixis.grounding.lite.config import LiteConfig
from deixis.grounding.lite.model import LiteGrounder
from deixis.grounding.lite.region_facts import FACTS, region_facts
from deixis.grounding.lite.word_facts import word_facts
from deixis.grounding.lite.word_groups import WordGroup
from deixis.text.rules.chunker import chunk
from deixis.text.vocabulary import UNKNOWN, Entry, Vocabulary
from deixis.types import Regions
from tests.grounding.conftest import batch_of

VOCABULARY = Vocabulary(
    [
        Entry("a", 9, "DT", "a"),
        Entry("dog", 8, "NN", "dog"),
        Entry("holds", 7, "VBZ", "hold"),
        Entry("red", 6, "JJ", "red"),
        Entry("cat", 5, "NN", "cat"),
        Entry("man", 4, "NN", "man"),
        Entry("dogs", 3, "NNS", "dog"),
        Entry("grass", 2, "NN", "grass"),
    ]
)
A, DOG, _, RED, CAT, MAN, DOGS, GRASS = range(4, 12)
SIZES = InputSizes(words=len(VOCABULARY), features=5, classes=3)


def grounder(**options: object) -> LiteGrounder:
    torch.manual_seed(0)
    model = LiteGrounder(LiteConfig(width=6, **options), SIZES, VOCABULARY)  # type: ignore[arg-type]
    for weights in model.parameters():
        torch.nn.init.normal_(weights, std=0.5)
    return model.eval()


@pytest.fixture
def batch() -> Batch:
    made = batch_of()
    return replace(made, regions=replace(made.regions, regionness=torch.rand(2, 4)))


def test_words_know_their_lemma_and_kind() -> None:
    facts = word_facts(VOCABULARY)
    assert int(facts["lemma"][DOGS]) == DOG
    assert float(facts["plural"][DOGS]) == 1.0
    assert float(facts["plural"][DOG]) == 0.0
    assert (facts["group"][[DOG, MAN]] == WordGroup.THING).all()
    assert facts["group"][[RED, GRASS, UNKNOWN]].tolist() == [WordGroup.OTHER, WordGroup.PLACE, WordGroup.OTHER]
    assert facts["silent"][[0, 2, A]].all()
    assert not facts["silent"][RED]


def test_facts_are_as_many_as_promised_and_know_the_whole_image(batch: Batch) -> None:
    boxes = batch.regions.boxes.clone()
    boxes[0, 3] = torch.tensor([0.0, 0.0, 100.0, 100.0])
    facts = region_facts(replace(batch.regions, boxes=boxes))
    assert facts.shape == (2, 4, FACTS)
    assert facts[0, :, 11].tolist() == [0.0, 0.0, 0.0, 1.0]  # whole
    assert torch.allclose(facts[0, 3, 3], torch.tensor(0.0))  # log of area 1
    assert torch.isfinite(facts).all()


@torch.no_grad()
def test_presence_is_the_mean_of_exponents_under_the_prior(batch: Batch) -> None:
    model, regions = grounder(), batch.regions
    words = torch.tensor([DOG, GRASS])
    found = model.presence(words, regions)
    seen = model.evidence_regions(model.looks(regions))
    assert regions.regionness is not None
    for row, word in enumerate(words.tolist()):
        for image in range(2):
            top = bottom = 0.0
            for at in range(int(regions.mask[image].sum())):
                thing = float(regions.objectness[image, at]) ** 0.5
                part = max(float(regions.regionness[image, at]), thing / 2)
                weight = thing if word == DOG else part
                top += weight * float((model.evidence_words.weight[word] @ seen[image, at]).exp())
                bottom += weight
            assert float(found[row, image]) == pytest.approx(torch.tensor(top / bottom).log().item(), abs=1e-4)
    own = model.own_presence(words, regions, torch.tensor([0, 1]))
    assert torch.allclose(own, found[[0, 1], [0, 1]], atol=1e-5)


@pytest.mark.parametrize("mix", [0.0, 0.5])
def test_padded_regions_get_nothing_and_change_nothing(batch: Batch, mix: float) -> None:
    model = grounder(mix=mix)
    attention = model.attention(batch)
    assert attention.shape == (3, 7, 4)
    assert torch.allclose(attention.sum(-1), torch.ones(3, 7), atol=1e-5)
    assert (attention[batch.image_of == 1][..., 3] == 0).all()
    other = batch.regions.features.clone()
    other[1, 3] = 100.0
    changed = replace(batch, regions=replace(batch.regions, features=other))
    assert torch.allclose(model.attention(changed), attention, atol=1e-6)
    assert torch.allclose(model.match(changed), model.match(batch), atol=1e-6)


def test_a_batch_gives_what_its_captions_give_alone(batch: Batch) -> None:
    model = grounder(mix=0.5)
    together, matched = model.word_scores(batch), model.match(batch)
    phrases = batch.phrases
    assert phrases is not None
    for caption in range(3):
        mine = phrases.caption == caption
        alone = replace(
            batch,
            words=batch.words[caption : caption + 1],
            tags=batch.tags[caption : caption + 1],
            image_of=batch.image_of[caption : caption + 1],
            phrases=PhraseBatch(phrases.caption[mine] * 0, phrases.first[mine], phrases.last[mine], phrases.head[mine]),
            relations=None,
        )
        assert torch.allclose(model.word_scores(alone)[0], together[caption], atol=1e-5)
        assert torch.allclose(model.match(alone)[0], matched[caption], atol=1e-5)


def test_heads_answer_for_their_phrase(batch: Batch) -> None:
    model = grounder()
    phrases = batch.phrases
    assert phrases is not None
    heads = model.word_scores(batch)[phrases.caption, phrases.head]
    assert torch.allclose(heads, model.phrase_logits(batch), atol=1e-5)


def test_modifiers_and_plurals_change_the_answer_and_articles_do_not() -> None:
    model = grounder()
    heads = torch.tensor([DOG, DOG, DOG])
    queries = model.queries(heads, torch.tensor([[0], [RED], [0]]), torch.tensor([0.0, 0.0, 1.0]))
    assert not torch.allclose(queries[0], queries[1])
    assert torch.allclose(queries[2] - queries[0], model.plural_head, atol=1e-6)


def test_no_gradient_reaches_the_evidence_through_the_teacher(batch: Batch) -> None:
    model = grounder()
    assert batch.phrases is not None
    assert not model.teacher(batch, batch.phrases).requires_grad
    assert model.pupil(batch, batch.phrases).requires_grad


def test_it_grounds_a_typed_sentence_and_doubts_what_it_cannot_read() -> None:
    model = grounder()
    regions = Regions(
        boxes=torch.tensor([[0.0, 0.0, 50.0, 50.0], [50.0, 50.0, 90.0, 90.0], [0.0, 0.0, 100.0, 100.0]]),
        features=torch.randn(3, 5),
        objectness=torch.tensor([0.9, 0.2, 0.1]),
        regionness=torch.tensor([0.5, 0.2, 0.4]),
        class_probs=torch.rand(3, 3),
        size=(100, 100),
        fingerprint="test",
    )
    answer = model.ground(regions, chunk("a red dog holds a cat", VOCABULARY))
    assert [phrase.text for phrase in answer.phrases] == ["a red dog", "a cat"]
    assert all(0 < phrase.score <= 1 and phrase.found for phrase in answer.phrases)
    assert isinstance(pad_regions([regions]), RegionBatch)
