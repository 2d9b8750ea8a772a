from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from deixis.data.batch import Batch, PhraseBatch, RegionBatch, WordKind
from deixis.data.sizes import InputSizes
from deixis.errors import DeixisError
from deixis.grounding.base import AnswerOptions
from deixis.grounding.scan import Scan, ScanConfig
from deixis.objectives.base import Context
from deixis.objectives.matching import Matching
from deixis.text.tokens import tokenise
from deixis.text.vocabulary import END, UNKNOWN, Entry, Vocabulary
from deixis.types import Phrase, Regions, Sentence

VOCABULARY = Vocabulary(
    [Entry("a", 9, "DT"), Entry("dog", 8, "NN", "dog", True), Entry("runs", 7, "VBZ"), Entry("red", 6, "JJ")]
)
A, DOG, RUNS, RED = 4, 5, 6, 7


def scan(**options: object) -> Scan:
    torch.manual_seed(0)
    config = ScanConfig(width=8, word_width=6, **options)  # type: ignore[arg-type]
    return Scan(config, InputSizes(words=len(VOCABULARY), features=5), VOCABULARY).eval()


def batch_of(images: int = 2, regions: int = 4, words: list[list[int]] | None = None) -> Batch:
    rng = torch.Generator().manual_seed(1)
    rows = words or [[A, DOG, RUNS, END], [A, RED, DOG, END], [RUNS, END, 0, 0]]
    kinds = {DOG: WordKind.NOUN, RUNS: WordKind.VERB, RED: WordKind.ADJECTIVE}
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
        tags=torch.tensor([[kinds.get(word, WordKind.OTHER) for word in row] for row in rows]),
    )


@pytest.mark.parametrize("direction", ["text-to-image", "image-to-text"])
def test_a_caption_with_its_own_image_scores_as_in_the_table(direction: str) -> None:
    model, batch = scan(direction=direction), batch_of()
    table = model.table(batch)  # (B, C)
    torch.testing.assert_close(model.match(batch), table[batch.image_of, torch.arange(3)])


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


@pytest.mark.parametrize("direction", ["text-to-image", "image-to-text"])
@pytest.mark.parametrize("words", [(), ("noun",), ("noun", "adjective")])
def test_padding_changes_nothing(direction: str, words: tuple[str, ...]) -> None:
    model, batch = scan(direction=direction, words=words, location=True), batch_of()
    torch.testing.assert_close(model.table(padded(batch)), model.table(batch))
    attention = model.attention(padded(batch))
    torch.testing.assert_close(attention[:, :4, :4], model.attention(batch))
    assert not attention[:, :, 4:].any()


def test_batch_equals_single() -> None:
    model, batch = scan(), batch_of()
    together = model.match(batch)
    for at in range(3):
        one = replace(
            batch, words=batch.words[at : at + 1], tags=batch.tags[at : at + 1], image_of=batch.image_of[at : at + 1]
        )
        torch.testing.assert_close(model.match(one), together[at : at + 1])


def test_pos_scan_counts_nouns_and_all_words_where_there_are_none() -> None:
    batch = batch_of(words=[[A, DOG, RUNS, END], [A, RUNS, END, 0], [A, UNKNOWN, DOG, END]])
    batch = replace(batch, tags=torch.where(batch.words == UNKNOWN, int(WordKind.NOUN), batch.tags))
    expected = [[False, True, False, False], [True, True, False, False], [False, False, True, False]]
    assert scan().counted(batch).tolist() == expected
    assert scan(words=()).counted(batch).sum(1).tolist() == [3, 2, 3]


def test_words_that_do_not_count_change_the_released_form_only_through_their_context() -> None:
    model, batch = scan(form="code"), batch_of()
    vectors = model.words(batch)
    changed = vectors.clone()
    changed[0, 0] = -changed[0, 0]  # the article
    args = model.regions(batch.regions), batch.regions.mask
    nouns = model.counted(batch)
    torch.testing.assert_close(model.scores(*args, vectors, nouns)[:, 0], model.scores(*args, changed, nouns)[:, 0])


def test_training_raises_the_score_of_the_right_image() -> None:
    model, batch = scan(words=()), batch_of(images=3, words=[[A, DOG, END], [A, RED, END], [RUNS, RED, END]])
    objective, optimizer = Matching(), torch.optim.Adam(model.parameters(), 0.01)
    first = last = 0.0
    for step in range(60):
        losses = objective(Context(model, batch, step))
        gradients: tuple[Tensor, ...] = torch.autograd.grad(losses["matching"], list(model.parameters()))
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        last = float(losses["matching"].detach())
        first = first or last
    assert last < 0.3 * first
    assert float(objective(Context(model, batch))["_matched"]) == 1.0


def test_phrases_get_the_boxes_of_their_best_regions() -> None:
    model = scan(words=())
    torch.manual_seed(3)
    regions = Regions(
        torch.tensor([[0.0, 0, 4, 4], [2, 2, 8, 8], [0, 0, 10, 10]]), torch.randn(3, 5), torch.rand(3), (10, 10), "x"
    )
    tokens = tokenise("a red dog runs 🐕")
    sentence = Sentence("a red dog runs 🐕", tokens, (Phrase(0, 3, head=2), Phrase(4, 5)))
    answer = model.ground(regions, sentence)
    known, strange = answer.phrases
    assert known.text == "a red dog"
    assert (known.start, known.end) == (0, 9)
    assert len(known.ranked) == 3
    assert known.boxes == known.ranked[:1]
    assert sum(known.ranked_scores) == pytest.approx(1, abs=1e-5)
    assert not strange.found
    assert strange.boxes == ((0.0, 0.0, 10.0, 10.0),)
    assert model.ground(regions, sentence, [0]).phrases == (known,)
    with pytest.raises(DeixisError, match="phrase 7 does not exist"):
        model.ground(regions, sentence, [7])


def test_the_objectness_prior_prefers_whole_things() -> None:
    batch = batch_of()
    phrases = PhraseBatch(torch.tensor([0]), torch.tensor([0]), torch.tensor([2]), torch.tensor([1]))
    batch = replace(batch, phrases=phrases)
    bare = scan(words=()).phrase_logits(batch)
    shifted = scan(words=(), answers=AnswerOptions(objectness=2.0)).phrase_logits(batch)
    torch.testing.assert_close(shifted, bare + 2 * batch.regions.objectness[:1].log())


@pytest.mark.parametrize("form", ["paper", "code"])
@pytest.mark.parametrize("words", [(), ("noun",), ("noun", "adjective")])
def test_moving_words_to_the_front_changes_no_score(words: tuple[str, ...], form: str) -> None:
    model, batch = scan(words=words, form=form), batch_of()
    over, counted = model.normalised_over(batch), model.counted(batch)
    whole = model.scores(model.regions(batch.regions), batch.regions.mask, model.words(batch), over, counted)
    torch.testing.assert_close(model.table(batch), whole)


@pytest.mark.parametrize("form", ["paper", "code"])
def test_the_score_of_a_pair_is_the_papers(form: str) -> None:
    """Equations 4 to 8 one word and one region at a time: ``paper`` normalises over every word, ``code`` over nouns."""
    model, batch = scan(form=form), batch_of(words=[[A, DOG, RUNS, RED, END], [RED, DOG, A, DOG, END]], images=2)
    nouns = [[1], [1, 3]]
    scores = []
    for caption, counted in enumerate(nouns):
        e, v = model.words(batch)[caption, :4], model.regions(batch.regions)[caption]
        s = [[float((word @ region).detach()) for region in v] for word in e]
        over = range(4) if form == "paper" else counted
        relevances = []
        for t in counted:
            logits = []
            for i in range(len(v)):
                norm = sum(max(s[u][i], 0) ** 2 for u in over) ** 0.5
                logits.append(9 * max(s[t][i], 0) / norm if norm else 0.0)
            beta = torch.tensor(logits).softmax(0)
            seen = sum(weight * region for weight, region in zip(beta, v, strict=True))
            relevances.append(float(e[t] @ seen / seen.norm()))
        scores.append(sum(relevances) / len(relevances))
    torch.testing.assert_close(model.match(batch), torch.tensor(scores), atol=1e-5, rtol=1e-4)


def test_the_papers_form_listens_to_the_words_that_do_not_count() -> None:
    batch = batch_of(words=[[A, DOG, RUNS, END]], images=1)
    paper, code = scan(), scan(form="code")
    assert not torch.allclose(paper.match(batch), code.match(batch))
    (gradient,) = torch.autograd.grad(paper.scores(*_parts(paper, batch))[0, 0], paper.embed.weight)
    assert gradient[DOG].abs().sum() > 0
    everything = scan(words=())
    torch.testing.assert_close(everything.match(batch), scan(words=(), form="code").match(batch))  # SCAN is one form


def _parts(model: Scan, batch: Batch) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    vectors = model.regions(batch.regions), batch.regions.mask, model.words(batch)
    return *vectors, model.normalised_over(batch), model.counted(batch)


def test_a_word_alone_is_answered_by_its_similarity() -> None:
    model, batch = scan(), batch_of(words=[[DOG, END]], images=1)
    similarity = (model.words(batch) @ model.regions(batch.regions).transpose(1, 2))[0, 0]  # (N,)
    torch.testing.assert_close(model.word_scores(batch)[0, 0], 9.0 * similarity)
    assert len(set(model.attention(batch)[0, 0].tolist())) == 4  # no two regions alike


def test_attention_carries_the_prior_of_the_answers() -> None:
    batch = batch_of()
    bare, prior = scan().attention(batch), scan(answers=AnswerOptions(objectness=0.5)).attention(batch)
    weighed = bare * batch.regions.objectness[batch.image_of].unsqueeze(1) ** 0.5
    torch.testing.assert_close(prior, weighed / weighed.sum(-1, keepdim=True))


def test_answers_may_be_normalised_over_other_words_than_in_training() -> None:
    batch = batch_of(words=[[A, DOG, RUNS, DOG, END]], images=1)
    nouns, everything = scan(form="code"), scan(form="code", attend_over="all")
    similarity = (nouns.words(batch) @ nouns.regions(batch.regions).transpose(1, 2))[0, :4]  # (T, N)
    positive = similarity.clamp(min=0)
    for model, over in ((nouns, [1, 3]), (everything, [0, 1, 2, 3])):
        expected = 9.0 * positive[1] / (positive[over].square().sum(0) + 1e-12).sqrt().clamp(min=1e-6)
        torch.testing.assert_close(model.word_scores(batch)[0, 1], expected)
    torch.testing.assert_close(everything.match(batch), nouns.match(batch))  # training is not touched
