from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from deixis.data.batch import Batch, RelationBatch
from deixis.errors import DeixisError
from deixis.geometry import decode_deltas
from deixis.grounding.label_prior import LabelPriorConfig
from deixis.grounding.reir.model import Reir, ReirConfig
from deixis.grounding.reir.pair_networks import PairNetwork
from deixis.text.tokens import tokenise
from deixis.types import Phrase, Regions, Relation, Sentence

A, DOG, HOLDS, RED, CAT, MAN = range(4, 10)
FORMS = pytest.mark.parametrize("form", ["paper", "code"])


def pair(network: PairNetwork, phrase: torch.Tensor, thing: torch.Tensor) -> torch.Tensor:
    """A network over the concatenation, with its weights put side by side."""
    weights = [network.of_object.weight] if network.of_phrase is None else [network.of_phrase.weight]
    inputs = [thing] if network.of_phrase is None else [phrase, thing]
    if network.of_phrase is not None:
        weights.append(network.of_object.weight)
    hidden = F.linear(torch.cat(inputs), torch.cat(weights, 1), network.of_object.bias)
    return hidden if network.out is None else network.out(hidden.relu())


def softmax(values: list[float]) -> list[float]:
    grown = [math.exp(value) for value in values]
    return [value / sum(grown) for value in grown]


def see(model: Reir, batch: Batch, image: int, region: int, box: torch.Tensor) -> torch.Tensor:
    width, height = batch.regions.sizes[image].tolist()
    place = box / torch.tensor([width, height, width, height])
    area = (place[2] - place[0]) * (place[3] - place[1])
    raw = torch.cat([batch.regions.features[image, region], place, area[None]])
    seen: torch.Tensor = (
        model.see(
            batch.regions.features[image, region][None],
            box[None],
            batch.regions.sizes[image][None],
            torch.tensor([True]),
        )[0]
        if model.see.norm is not None
        else model.see.embed(raw).relu()
    )
    return seen


@pytest.mark.parametrize(
    ("form", "product", "own"),
    [("paper", "attention", False), ("paper", "score", False), ("code", "attention", False), ("paper", "score", True)],
)
@torch.no_grad()
def test_equations_1_to_11_written_out(cases: Any, form: str, product: str, own: bool) -> None:
    model, batch = cases.reir(form, product=product, own_networks=own), cases.batch()
    logits, boxes = model.ranked_boxes(batch)
    assert batch.phrases is not None
    spans = [(0, 0, 2), (0, 3, 6), (1, 0, 2), (2, 0, 2), (2, 3, 5)]
    coarse, kept, phrases = [], [], []
    probs = batch.regions.class_probs
    assert probs is not None
    for caption, first, last in spans:
        image = int(batch.image_of[caption])
        length = int((batch.words[caption] > 3).sum())
        states = model.read.read(model.read.embed(batch.words[caption : caption + 1, :length]))[0][0]
        phrase = states[first:last].mean(0)  # equation 1
        if model.read.norm is not None:  # as released
            phrase = model.read.norm(phrase[None])[0]
        count = int(batch.regions.mask[image].sum())
        scores, things, near, moved = [], [], [], []
        for region in range(count):
            box = batch.regions.boxes[image, region]
            thing = see(model, batch, image, region, box)
            label = int(probs[image, region].argmax())
            prior = sum(float(model.labels[word, label]) for word in batch.words[caption, first:last]) / (last - first)
            scores.append(float(pair(model.coarse.score, phrase, thing)) * prior)  # equations 2 to 4
            assert model.coarse.offset is not None
            offset = pair(model.coarse.offset, phrase, thing)
            size = batch.regions.sizes[image]
            new = decode_deltas(box, offset, (10.0, 10.0, 5.0, 5.0)).clamp(min=0)
            moved.append(torch.minimum(new, torch.cat([size, size])))
            things.append(thing)
            near.append(prior)
        alpha = softmax(scores)
        best = sorted(range(count), key=lambda at: -scores[at])[:2]
        again = [see(model, batch, image, at, moved[at]) for at in best]
        coarse.append((scores, alpha, best, near, moved, image))
        kept.append(again)
        phrases.append(phrase)
    assert model.graph is not None
    assert model.fine is not None
    assert model.fine.offset is not None
    nodes = [
        sum(alpha[at] * x for at, x in zip(best, again, strict=True))
        for (_, alpha, best, *_), again in zip(coarse, kept, strict=True)
    ]  # equation 5
    partner = {0: 1, 1: 0, 3: 4, 4: 3}
    for i, (scores, alpha, best, near, moved, image) in enumerate(coarse):
        if form == "paper":
            heard = model.graph.message(nodes[partner[i]]) if i in partner else 0  # one neighbour: omega is 1
            told = nodes[i] + heard
        else:
            assert model.graph.gate is not None
            agree = i in partner and float(model.graph.gate(nodes[i]) @ model.graph.gate(nodes[partner[i]])) > 0
            told = model.graph.message(nodes[partner[i]]) if agree else torch.zeros(6)
        things = [x + alpha[at] * told for at, x in zip(best, kept[i], strict=True)]  # equation 8
        fine = [float(pair(model.fine.score, phrases[i], x)) * near[at] for at, x in zip(best, things, strict=True)]
        beta = softmax(fine)  # equation 9
        looks = [b * alpha[at] for b, at in zip(beta, best, strict=True)] if form == "code" else beta
        seen = sum(weight * x for weight, x in zip(looks, things, strict=True))
        torch.testing.assert_close(model(batch).levels[-1].seen[i], seen, atol=1e-4, rtol=1e-4)
        for k, at in enumerate(best):
            expected = scores[at] * fine[k] if product == "score" else math.log(alpha[at]) + math.log(beta[k])
            assert float(logits[i, at]) == pytest.approx(expected, abs=1e-4)  # equation 11
            offset = pair(model.fine.offset, phrases[i], things[k])  # equation 10
            size = batch.regions.sizes[image]
            final = decode_deltas(moved[at], offset, (10.0, 10.0, 5.0, 5.0)).clamp(min=0)
            torch.testing.assert_close(
                boxes[i, at], torch.minimum(final, torch.cat([size, size])), atol=1e-3, rtol=1e-4
            )
        rest = [at for at in range(len(scores)) if at not in best]
        for at in rest:  # not kept: below the kept ones, in the coarse order, moved by the coarse offsets
            assert logits[i, at] < logits[i, best].min()
            torch.testing.assert_close(boxes[i, at], moved[at], atol=1e-3, rtol=1e-4)
        order = sorted(rest, key=lambda at: -scores[at])
        assert logits[i, order].tolist() == sorted(logits[i, rest].tolist(), reverse=True)


@FORMS
def test_padding_changes_nothing_and_gets_no_weight(cases: Any, form: str) -> None:
    model, batch = cases.reir(form), cases.batch()
    for training in (False, True):
        model.train(training)
        one, two = model(batch), model(cases.padded(batch))
        for a, b in zip(one.levels, two.levels, strict=True):
            torch.testing.assert_close(a.seen, b.seen)
        assert not two.coarse.weights[:, 4:].any()
        assert not two.coarse.weights[3:, 3].any()  # the second image has three regions
        assert (two.refined.chosen < 4).all()
    model.eval()
    logits, boxes = model.ranked_boxes(batch)
    more, more_boxes = model.ranked_boxes(cases.padded(batch))
    torch.testing.assert_close(more[:, :4], logits)
    torch.testing.assert_close(more_boxes[:, :4], boxes)
    assert torch.isneginf(more[:, 4:]).all()
    torch.testing.assert_close(model.attention(cases.padded(batch))[:, :7, :4], model.attention(batch))
    torch.testing.assert_close(model.match(cases.padded(batch)), model.match(batch))


def test_padding_gets_no_gradient(cases: Any) -> None:
    model, batch = cases.reir(), cases.padded(cases.batch())
    features = batch.regions.features.requires_grad_()
    sum(level.seen.sum() for level in model(batch).levels).backward()
    assert features.grad is not None
    assert features.grad[0, :4].abs().sum() > 0
    assert not features.grad[:, 4:].any()
    assert not features.grad[1, 3].any()


def test_fewer_regions_than_k_is_no_trouble(cases: Any) -> None:
    model, batch = cases.reir(keep=10), cases.batch()
    logits, _ = model.ranked_boxes(batch)
    assert torch.isfinite(logits[:3]).all()
    assert torch.isfinite(logits[3:, :3]).all()
    assert torch.isneginf(logits[3:, 3]).all()


@FORMS
def test_batch_equals_single(cases: Any, form: str) -> None:
    model, batch = cases.reir(form), cases.batch()
    logits, boxes = model.ranked_boxes(batch)
    assert batch.phrases is not None
    one = replace(
        batch,
        regions=replace(
            batch.regions,
            ids=("1",),
            **{
                name: getattr(batch.regions, name)[1:]
                for name in ("features", "boxes", "mask", "sizes", "objectness", "frame", "class_probs")
            },
        ),
        words=batch.words[2:],
        tags=batch.tags[2:],
        image_of=torch.tensor([0]),
        phrases=replace(
            batch.phrases,
            caption=torch.tensor([0, 0]),
            **{name: getattr(batch.phrases, name)[3:] for name in ("first", "last", "head")},
        ),
        relations=RelationBatch(torch.tensor([0]), torch.tensor([1]), torch.tensor([1])),
    )
    alone, alone_boxes = model.ranked_boxes(one)
    torch.testing.assert_close(alone, logits[3:])
    torch.testing.assert_close(alone_boxes, boxes[3:])
    torch.testing.assert_close(model.match(one), model.match(batch)[2:])
    torch.testing.assert_close(model.attention(one), model.attention(batch)[2:])


def test_boxes_stay_until_the_step_of_the_recipe_and_move_from_then_on(cases: Any) -> None:
    model, batch = cases.reir(start=3), cases.batch()
    original = batch.regions.boxes[batch.image_of[batch.phrases.caption]]
    model(batch, 2)
    assert not model.moves
    torch.testing.assert_close(model.ranked_boxes(batch)[1], original)
    model(batch, 3)
    assert model.moves
    assert not torch.allclose(model.ranked_boxes(batch)[1], original)
    assert bool(cases.reir().state_dict()["moves"])  # a saved model knows


def test_the_visual_regression_does_not_hear_the_phrase(cases: Any) -> None:
    batch = cases.batch()
    for regression, same in (("visual", True), ("phrase", False)):
        offsets = cases.reir(regression=regression)(batch).coarse.offsets
        assert torch.allclose(offsets[0], offsets[1]) == same  # two phrases of one image


def test_the_released_score_orders_regions_by_the_prior_alone(cases: Any) -> None:
    scores = cases.reir("code", prior="none")(cases.batch()).coarse.scores
    torch.testing.assert_close(scores[0] - scores[0, 0], scores[1] - scores[1, 0])
    scores = cases.reir("paper", prior="none")(cases.batch()).coarse.scores
    assert not torch.allclose(scores[0] - scores[0, 0], scores[1] - scores[1, 0])


def test_the_baseline_has_one_level_and_fixed_boxes(cases: Any) -> None:
    model, batch = cases.reir(two_stages=False, regression="none", graph="none"), cases.batch()
    done = model(batch, 10**6)
    assert len(done.levels) == 1
    logits, boxes = model.ranked_boxes(batch)
    torch.testing.assert_close(logits.softmax(-1), done.coarse.weights)
    torch.testing.assert_close(boxes, done.coarse.boxes)


@pytest.mark.parametrize("options", [{"two_stages": False}, {"keep": 0}, {"start": -1}])
def test_impossible_settings_are_refused(cases: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"two_stages|keep"):
        ReirConfig(**options)


def test_the_lemma_prior_knows_its_labels(cases: Any) -> None:
    model, batch = cases.reir(prior="lemma"), cases.batch()
    assert model.labels[DOG].tolist() == [1, 0, 0]
    assert model.labels[CAT].tolist() == [0, 1, 0]
    assert not model.labels[[0, 1, 2, 3, A, RED, MAN]].any()
    probs = torch.eye(3).repeat(2, 2, 1)[:, :4]
    labelled = replace(batch, regions=replace(batch.regions, class_probs=probs))
    prior = model.prior(labelled, model._prior_words(labelled), labelled.phrases.caption)
    torch.testing.assert_close(prior[1], torch.tensor([1 / 3, 0, 0, 1 / 3]))  # "a red dog"


def test_names_must_fit_the_classes(cases: Any) -> None:
    config = ReirConfig(width=4, prior=LabelPriorConfig(kind="lemma"))
    with pytest.raises(DeixisError, match="3 classes but 2 names"):
        Reir(config, cases.sizes, cases.vocabulary, cases.labels[:2]).start()


def photo(cases: Any) -> Regions:
    batch = cases.batch()
    assert batch.regions.class_probs is not None
    return Regions(
        boxes=batch.regions.boxes[0],
        features=batch.regions.features[0],
        objectness=batch.regions.objectness[0],
        size=(100, 100),
        fingerprint="test",
        class_probs=batch.regions.class_probs[0],
        class_names=cases.labels,
    )


def test_ground_hears_the_relations_of_phrases_that_were_not_asked_for(cases: Any) -> None:
    model = cases.reir()
    text = "A man holds a red dog"
    phrases = (Phrase(0, 2, head=1), Phrase(3, 6, head=5))
    related = Sentence(text, tokenise(text), phrases, (Relation(0, "holding", 1),))
    answer = model.ground(photo(cases), related, [1])
    batch = cases.batch()
    logits, boxes = model.ranked_boxes(batch)
    best = int(logits[1].argmax())
    assert answer.phrases[0].text == "a red dog"
    assert answer.phrases[0].boxes[0] == pytest.approx(boxes[1, best].tolist(), rel=1e-4)
    alone = model.ground(photo(cases), replace(related, relations=()), [1])
    assert alone.phrases[0].ranked_scores != answer.phrases[0].ranked_scores
    assert len(model.ground(photo(cases), related).phrases) == 2


def test_ground_answers_odd_sentences(cases: Any) -> None:
    model = cases.reir()
    for text in ("Zebras", "🐕", "eine Katze", "a " * 80 + "dog"):
        tokens = tokenise(text)
        sentence = Sentence(text, tokens, (Phrase(0, len(tokens)), Phrase(len(tokens) - 1, len(tokens))))
        for phrase in model.ground(photo(cases), sentence).phrases:
            assert 0 <= phrase.score <= 1
    with pytest.raises(DeixisError, match="phrase 7 does not exist"):
        model.ground(photo(cases), sentence, [7])


def test_both_levels_share_their_networks(cases: Any) -> None:
    model, own = cases.reir(), cases.reir(own_networks=True)
    assert model.fine is model.coarse  # equations 2, 9 and 10 have one F_cls and one F_reg
    assert own.fine is not own.coarse
    names = [name for name, _ in model.named_parameters()]
    assert len(names) == len(set(names)) < len(list(own.named_parameters()))
    assert cases.reir(two_stages=False, regression="none", graph="none").fine is None


@torch.no_grad()
def test_as_released_nobody_looks_where_the_label_says_nothing(cases: Any) -> None:
    batch = cases.batch()
    batch.regions.class_probs[:] = 0
    for region, label in ((0, 0), (1, 1), (2, 2), (3, 0)):
        batch.regions.class_probs[0, region, label] = 1
    weights = {}
    for form in ("paper", "code"):
        model = cases.reir(form, prior="lemma")
        model.coarse.score.of_object.bias.fill_(-30.0)  # every match is bad, so a nearness of 0 would be the best score
        if model.coarse.score.out is not None:
            model.coarse.score.out.weight.fill_(0.0)
            model.coarse.score.out.bias.fill_(-30.0)
        done = model(batch)
        weights[form] = done.coarse.weights
        assert done.refined is not None
        kept = done.refined.chosen[1].tolist()  # "a red dog": dogs are regions 0 and 3
        assert sorted(kept) == ([1, 2] if form == "paper" else [0, 3])
        # "a man" fits no label: everybody is looked at
        torch.testing.assert_close(done.coarse.weights[0], torch.full((4,), 0.25))
    assert weights["paper"][1, [0, 3]].sum() < 1e-3
    assert float(weights["code"][1, [0, 3]].sum()) == pytest.approx(1)
    assert weights["code"][1, [1, 2]].tolist() == [0, 0]


def test_a_product_of_scores_is_not_released(cases: Any) -> None:
    with pytest.raises(ValueError, match="product score goes with form paper"):
        cases.reir("code", product="score")
