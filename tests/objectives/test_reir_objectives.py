from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from deixis.data.batch import PhraseBatch, RelationBatch
from deixis.grounding.reir.refinement import Neighbourhood, self_taught_losses
from deixis.objectives import phrase_ranking
from deixis.objectives.balance import Reduction
from deixis.objectives.base import Context
from deixis.objectives.phrase_ranking import (
    PhraseRanking,
    PhraseRankingOptions,
    caption_scores,
    ranking_losses,
)
from deixis.objectives.reconstruction import Reconstruction, ReconstructionOptions, phrase_targets
from deixis.objectives.relation_classification import (
    RelationClassification,
    RelationOptions,
    class_weights,
)
from deixis.objectives.self_taught import SelfTaught, SelfTaughtOptions
from deixis.objectives.visual_consistency import VisualConsistency, VisualConsistencyOptions
from deixis.text.vocabulary import BEGIN, END

REDUCTIONS = pytest.mark.parametrize("how", ["sum", "mean", "count"])
FORMS = pytest.mark.parametrize("form", ["paper", "code"])


def objectives(cases: Any, model: Any) -> list[torch.nn.Module]:
    found: list[torch.nn.Module] = [
        Reconstruction(ReconstructionOptions(), model, cases.sizes),
        PhraseRanking(),
        RelationClassification(RelationOptions(hidden=4), model, cases.data()),
    ]
    return found if model.config.regression == "none" else [*found, SelfTaught(SelfTaughtOptions(0.1), model)]


def test_a_phrase_is_followed_by_its_end(cases: Any) -> None:
    words = phrase_targets(cases.batch())
    assert words.tolist() == [[4, 9, END, 0], [4, 7, 5, END], [4, 8, END, 0], [4, 5, END, 0], [4, 8, END, 0]]


def added_up(parts: list[list[float]], how: Reduction) -> float:
    """One loss from those of the parts of each caption: equation 12's sums, the released means, or one mean of all."""
    if how == "count":
        return sum(map(sum, parts)) / max(sum(map(len, parts)), 1)
    each = [sum(own) / (max(len(own), 1) if how == "mean" else 1) for own in parts]
    return sum(each) / len(parts)


@FORMS
@REDUCTIONS
@torch.no_grad()
def test_reconstruction_is_equations_13_and_14(cases: Any, form: str, how: Reduction) -> None:
    model, batch = cases.reir(form), cases.batch()
    objective = Reconstruction(ReconstructionOptions(reduction=how), model, cases.sizes)
    loss = float(objective(Context(model, batch))["reconstruction"].detach())
    cell = torch.nn.LSTMCell(10, 6) if form == "paper" else torch.nn.GRUCell(6, 6)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).copy_(getattr(objective.decode, f"{name}_l0"))
    total = 0.0
    phrases = [[4, 9], [4, 7, 5], [4, 8], [4, 5], [4, 8]]
    for level in model(batch).levels if form == "paper" else model(batch).levels[-1:]:
        parts: list[list[float]] = [[], [], []]
        for caption, seen, phrase in zip((0, 0, 1, 2, 2), level.seen, phrases, strict=True):
            state, before = None, BEGIN
            for word in [*phrase, END]:
                fed = torch.cat([seen, objective.embed.weight[before]])
                if form == "code":  # what the phrase sees is the first word
                    fed = seen if before == BEGIN else objective.embed.weight[before]
                state = cell(fed[None], state)
                hidden = state[0] if form == "paper" else state
                parts[caption].append(-float(torch.log_softmax(objective.say(hidden)[0], 0)[word]))
                before = word
        total += added_up(parts, how)
    assert loss == pytest.approx(total, rel=1e-4)


@REDUCTIONS
@torch.no_grad()
def test_relations_by_cross_entropy_are_equations_16_and_17(cases: Any, how: Reduction) -> None:
    model, batch = cases.reir(), cases.batch()
    batch = replace(
        batch, relations=RelationBatch(torch.tensor([0, 3, 0]), torch.tensor([1, 2, 0]), torch.tensor([1, 4, 1]))
    )  # the last predicate is none of the classes
    objective = RelationClassification(RelationOptions(hidden=4, reduction=how), model, cases.data())
    seen = model(batch).levels[-1].seen
    logits = [objective.predict(torch.cat([seen[i], seen[j]])) for i, j in ((0, 1), (3, 4))]
    expected = [-float(torch.log_softmax(row, 0)[at]) for row, at in zip(logits, (0, 1), strict=True)]
    wanted = added_up([expected[:1], [], expected[1:]], how)
    assert float(objective(Context(model, batch))["relations"]) == pytest.approx(wanted, rel=1e-5)


@REDUCTIONS
@torch.no_grad()
def test_relations_as_released_ask_every_class_of_each_pair(cases: Any, how: Reduction) -> None:
    model, batch = cases.reir(), cases.batch()
    objective = RelationClassification(RelationOptions("code", hidden=4, reduction=how), model, cases.data())
    seen = model(batch).levels[-1].seen
    pairs = []
    for (i, j), truth in (((0, 1), (1, 1)), ((3, 4), (1, 0))):  # the first pair holds and is beside
        total = 0.0
        logits = objective.predict(torch.cat([seen[i], seen[j]])).tolist()
        for value, true, weight in zip(logits, truth, (1, 10), strict=True):  # 400 and 100 times seen
            p = 1 / (1 + math.exp(-value))
            total -= weight * math.log(p if true else 1 - p)
        pairs.append(total / 2)  # the mean over classes
    wanted = added_up([pairs[:1], [], pairs[1:]], how)
    assert float(objective(Context(model, batch))["relations"]) == pytest.approx(wanted, rel=1e-5)


def test_rare_relations_weigh_up_to_ten() -> None:
    # 1/sqrt: .05, .1, .075 after 400, 100 and 1600/9 sightings
    assert class_weights(torch.tensor([400.0, 100.0, 1600 / 9])).tolist() == pytest.approx([1, 10, 5.5])
    assert class_weights(torch.tensor([7.0, 7.0])).tolist() == [1, 1]


@torch.no_grad()
def test_without_relations_there_is_nothing_to_classify(cases: Any) -> None:
    model, batch = cases.reir(), cases.batch()
    none = RelationBatch(*torch.zeros(3, 0, dtype=torch.long))
    objective = RelationClassification(RelationOptions(), model, cases.data())
    assert float(objective(Context(model, replace(batch, relations=none)))["relations"]) == 0


def test_caption_scores_look_both_ways() -> None:
    torch.manual_seed(0)
    products, caption = torch.randn(5, 5) * 3, torch.tensor([0, 0, 2, 3, 3])
    owner = torch.tensor([0, 2, 3])
    table = caption_scores(products, caption, owner)
    rows = {0: [0, 1], 2: [2], 3: [3, 4]}
    for at, read in enumerate(owner.tolist()):
        for column, shown in enumerate(owner.tolist()):
            block = products[rows[read]][:, rows[shown]]
            by_phrase = (F.softmax(block, 1) * block).sum(1).mean()
            by_thing = (F.softmax(block, 0) * block).sum(0).mean()
            assert float(table[at, column]) == pytest.approx(float(by_phrase + by_thing) / 2, rel=1e-5)


def test_caption_scores_survive_large_products() -> None:
    products = torch.tensor([[300.0, -300.0], [0.0, 200.0]])
    table = caption_scores(products, torch.tensor([0, 1]), torch.tensor([0, 1]))
    torch.testing.assert_close(table, products)


def test_the_hinge_takes_the_hardest_of_other_images() -> None:
    table = torch.tensor([[1.0, 5.0, 0.9], [5.0, 1.0, 0.0], [0.95, 0.0, 1.0]])
    image_of = torch.tensor([0, 0, 1])  # 0 and 1 belong to one image: their 5.0 never counts
    losses = ranking_losses(table, table, image_of, 0.2)
    # row over columns, then column over rows
    assert losses.tolist() == pytest.approx([0.1 + 0.15, 0.0, 0.15 + 0.1])


@torch.no_grad()
def test_captions_of_one_image_are_no_negatives_of_each_other(cases: Any) -> None:
    model, batch = cases.reir(), cases.batch()
    first = replace(
        batch,
        words=batch.words[:2],
        tags=batch.tags[:2],
        image_of=batch.image_of[:2],
        phrases=PhraseBatch(*(getattr(batch.phrases, name)[:3] for name in ("caption", "first", "last", "head"))),
        relations=None,
    )
    assert float(PhraseRanking()(Context(model, first))["ranking"]) == 0


@torch.no_grad()
def test_ranking_compares_what_phrases_see_at_both_levels(cases: Any) -> None:
    model, batch = cases.reir(), cases.batch()
    total = 0.0
    done = model(batch)
    for level in done.levels:
        products = torch.tensor([[float(model.fit(phrase, seen)) for seen in level.seen] for phrase in done.phrase])
        table = caption_scores(products, batch.phrases.caption, torch.arange(3))
        total += float(ranking_losses(table, table, batch.image_of, 0.2).mean())
    assert total > 0
    assert float(PhraseRanking()(Context(model, batch))["ranking"]) == pytest.approx(total, rel=1e-4)


@torch.no_grad()
def test_ranking_as_released_puts_one_vector_per_caption_against_one_per_image(cases: Any) -> None:
    model, batch = cases.reir("code"), cases.batch()
    done = model(batch)
    owners, image = [[0, 1], [2], [3, 4]], [0, 0, 1]
    total = 0.0
    for level in done.levels:
        captions = []
        for row in batch.words:
            states = model.read.read(model.read.embed(row[row > 3][None]))[0][0]  # no special word
            captions.append(model.match_phrase(states.mean(0)))
        shown = [sum(model.match_object(level.seen[at]) for at in own) / len(own) for own in owners]
        products = [[float(a @ b) / 5**0.5 for b in shown] for a in captions]
        for i in range(3):
            row = [math.exp(value) for value in products[i]]
            column = [math.exp(products[j][i]) for j in range(3)]
            for line in (row, column):
                p = [value / sum(line) for value in line]
                total += max(0.0, *(0.2 - p[i] + p[j] for j in range(3) if image[j] != image[i])) / 3
    assert total > 0
    loss = PhraseRanking(PhraseRankingOptions("code"))(Context(model, batch))["ranking"]
    assert float(loss) == pytest.approx(total, rel=1e-4)


def part(batch: Any, image: int) -> Any:
    """One image of a batch with its captions, as one of two processes would see it."""
    captions = (batch.image_of == image).nonzero().flatten()
    phrases = torch.isin(batch.phrases.caption, captions)
    spans = {name: getattr(batch.phrases, name)[phrases] for name in ("first", "last", "head")}
    names = ("features", "boxes", "mask", "sizes", "objectness", "frame", "class_probs")
    regions = replace(batch.regions, **{name: getattr(batch.regions, name)[image][None] for name in names})
    related = torch.isin(batch.relations.subject, phrases.nonzero().flatten())
    first = int(phrases.nonzero()[0])
    return replace(
        batch,
        regions=regions,
        words=batch.words[captions],
        tags=batch.tags[captions],
        image_of=torch.zeros(len(captions), dtype=torch.long),
        phrases=PhraseBatch(caption=batch.phrases.caption[phrases] - int(captions[0]), **spans),
        relations=RelationBatch(
            batch.relations.subject[related] - first,
            batch.relations.predicate[related],
            batch.relations.object[related] - first,
        ),
    )


@FORMS
@torch.no_grad()
def test_two_processes_rank_as_one(cases: Any, monkeypatch: pytest.MonkeyPatch, form: Any) -> None:
    model, batch, ranking = cases.reir(), cases.batch(), PhraseRanking(PhraseRankingOptions(form))
    whole = ranking(Context(model, batch))["ranking"]
    monkeypatch.setattr(phrase_ranking, "processes", lambda: 2)
    sent: list[list[torch.Tensor]] = []
    for image in (0, 1):  # what each process sends, in order
        sent.append([])

        def send(rows: torch.Tensor) -> torch.Tensor:
            sent[-1].append(rows)
            return rows

        monkeypatch.setattr(phrase_ranking, "gather_rows", send)
        ranking(Context(model, part(batch, image)))
    received = iter([torch.cat(rows) for rows in zip(*sent, strict=True)])
    monkeypatch.setattr(phrase_ranking, "gather_rows", lambda rows: next(received))
    torch.testing.assert_close(ranking(Context(model, part(batch, 1)))["ranking"], whole)


@torch.no_grad()
def test_boxes_are_taught_only_once_they_move(cases: Any) -> None:
    model, batch = cases.reir(start=5), cases.batch()
    objective = SelfTaught(SelfTaughtOptions(0.1), model)
    assert float(objective(Context(model, batch, step=4))["self_taught"]) == 0
    value = objective(Context(model, batch, step=5))["self_taught"]
    expected = sum(self_taught_losses(level, Neighbourhood(0.1)).sum() / 3 for level in model(batch).levels)
    assert float(value) > 0
    torch.testing.assert_close(value, expected)  # the sum over the five phrases of three captions
    with pytest.raises(ValueError, match="no offsets"):
        SelfTaught(SelfTaughtOptions(), cases.reir(regression="none"))


@FORMS
@pytest.mark.parametrize(
    "options",
    [
        {"two_stages": False, "regression": "none", "graph": "none"},
        {"regression": "none", "graph": "none"},
        {"regression": "visual", "graph": "none"},
        {"regression": "phrase", "graph": "none"},
        {"regression": "none"},
        {"graph": "uniform"},
        {},
    ],
)
def test_every_row_of_the_ablation_learns(cases: Any, form: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model, batch = cases.reir(form, **options), cases.batch()
    parts = objectives(cases, model)
    weights = [p for module in (model, *parts) for p in module.parameters()]
    optimizer = torch.optim.Adam(weights, 0.02)
    losses = []
    for step in range(12):
        model.train()
        context = Context(model, batch, step=step)
        values = {name: value for part in parts for name, value in part(context).items()}
        loss = sum((value for name, value in values.items() if not name.startswith("_")), torch.zeros(()))
        optimizer.zero_grad()
        loss.backward()
        assert all(torch.isfinite(weight.grad).all() for weight in weights if weight.grad is not None)
        optimizer.step()
        losses.append(float(values["reconstruction"].detach()))
    assert losses[-1] < losses[0]


@torch.no_grad()
def test_visual_consistency_weighs_places_by_attention(cases: Any) -> None:
    model, batch = cases.reir(two_stages=False, regression="none", graph="none"), cases.batch()
    objective = VisualConsistency(VisualConsistencyOptions(hidden=3), model)
    done = model(batch).coarse
    total = 0.0
    for phrase, image in enumerate([0, 0, 0, 1, 1]):
        guess = objective.place(done.seen[phrase]).tolist()
        width, height = batch.regions.sizes[image].tolist()
        for region in range(4 if image == 0 else 3):
            x1, y1, x2, y2 = batch.regions.boxes[image, region].tolist()
            truth = [(x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height]
            away = [abs(a - b) for a, b in zip(guess, truth, strict=True)]
            total += float(done.weights[phrase, region]) * sum(d * d / 2 if d < 1 else d - 0.5 for d in away)
    assert float(objective(Context(model, batch))["visual_consistency"]) == pytest.approx(total / 5, rel=1e-4)


@torch.no_grad()
def test_a_batch_without_phrases_gives_no_loss(cases: Any) -> None:
    model, batch = cases.reir(), cases.batch()
    empty = torch.zeros(0, dtype=torch.long)
    batch = replace(batch, phrases=PhraseBatch(empty, empty, empty, empty), relations=RelationBatch(*[empty] * 3))
    context = Context(model, batch)
    for part in objectives(cases, model):
        for name, value in part(context).items():
            assert name.startswith("_") or float(value) == 0
