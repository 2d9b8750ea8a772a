from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pytest
import torch

from deixis.captioning import AttentionConfig, Captioner, InputSizes, Strategy
from deixis.captioning.search.rules import Rules
from deixis.captioning.search.run import vote, voters
from deixis.data.batch import RegionBatch
from deixis.text.vocabulary import END, UNKNOWN

Make = Callable[..., Captioner]
KINDS = [
    AttentionConfig(),
    AttentionConfig(kind="distributed", branches=3),
    AttentionConfig(kind="multi_head", branches=2),
]
STRATEGIES = [
    Strategy("greedy", 6),
    Strategy("beam", 6, width=4),
    Strategy("beam", 6, width=4, length_power=0.7),
    Strategy("diverse_beam", 6, width=4, groups=2),
    Strategy("sample", 6, samples=3),
    Strategy("sample", 6, samples=2, top_k=5, top_p=0.8, temperature=0.7),
]


def _lively(model: Captioner, scale: float = 4.0) -> Captioner:
    """A random model prefers one word for ever; large weights make its captions vary."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(scale)
    attention = model.decoder.attention
    if hasattr(attention, "join") and hasattr(attention, "joined"):
        attention.join()  # type: ignore[operator]
    return model


@pytest.mark.parametrize("attention", KINDS, ids=lambda kind: kind.kind)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: f"{s.kind}-{s.length_power}-{s.top_k}")
def test_every_search_returns_the_attention_of_the_words_it_kept(
    attention: AttentionConfig, strategy: Strategy, make_captioner: Make, regions: RegionBatch
) -> None:
    model = _lively(make_captioner(attention=attention))
    encoded = model.encode(regions)
    found = model.search(encoded, strategy, torch.Generator().manual_seed(3))
    images, group, steps = found.words.shape
    assert len({tuple(row) for row in found.words.flatten(0, 1).tolist()}) > 1
    taught = model.decode(encoded, found.words.flatten(0, 1))
    assert torch.allclose(taught.attention.view(-1, images, group, steps, 7) * found.mask.unsqueeze(-1),
                          found.attention * found.mask.unsqueeze(-1), atol=1e-5)  # fmt: skip
    logs = taught.word_log_probs(found.words.flatten(0, 1)).view(images, group, steps)
    assert torch.allclose(logs, found.log_probs, atol=1e-4)
    lengths = found.mask.sum(-1)
    assert torch.allclose(found.scores, logs.sum(-1) / lengths**strategy.length_power, atol=1e-4)
    if "beam" in strategy.kind:
        assert (found.scores.diff(dim=1) <= 1e-6).all()
    assert ((found.words == END).sum(-1) == 1).all()
    assert (found.words != UNKNOWN).all()


@pytest.mark.parametrize("attention", [KINDS[0], KINDS[2], replace(KINDS[1], vote="mean")], ids=lambda kind: kind.kind)
def test_beam_of_width_1_is_greedy(attention: AttentionConfig, make_captioner: Make, regions: RegionBatch) -> None:
    """Where two words are as likely to the last digit, processors may round either way: such a model says nothing."""
    compared = 0
    for seed in range(5):
        model = _lively(make_captioner(seed, attention=attention))
        greedy = model.generate(regions, Strategy("greedy", 8))
        beam = model.generate(regions, Strategy("beam", 8, width=1))
        first = (greedy.words != beam.words).int().argmax(-1, keepdim=True)  # 0 where all are the same
        if not torch.equal(greedy.words, beam.words):
            ends, theirs = (found.log_probs.gather(-1, first) for found in (greedy, beam))
            assert torch.allclose(ends, theirs, atol=1e-5)
            continue
        compared += 1
        assert torch.allclose(greedy.attention, beam.attention)
        assert torch.allclose(greedy.scores, beam.scores, atol=1e-5)
    assert compared >= 3


def test_beam_search_finds_what_brute_force_finds(
    make_captioner: Make, make_regions: Callable[..., RegionBatch]
) -> None:
    """4 real words and the end, at most 3 words: 85 captions. A beam that holds them all must find the best."""
    sizes = InputSizes(words=8, features=12)
    regions = make_regions(images=2)
    for seed in range(4):
        model = _lively(make_captioner(seed, sizes=sizes), 2.0)
        captions = [[*middle, END] for length in range(4) for middle in itertools.product(range(4, 8), repeat=length)]
        words = torch.tensor([caption + [0] * (4 - len(caption)) for caption in captions])
        encoded = model.encode(regions)
        scores = torch.stack(
            [model.decode(encoded.select(torch.full((len(words),), image)), words).word_log_probs(words).sum(1)
             for image in range(2)]
        )  # fmt: skip
        found = model.search(encoded, Strategy("beam", 3, width=64))
        order = scores.argsort(dim=1, descending=True)
        for image in range(2):
            for rank in range(5):
                expected = words[order[image, rank]]
                assert found.words[image, rank, : len(expected)].tolist() == expected.tolist()
        assert torch.allclose(found.scores[:, :5], scores.sort(dim=1, descending=True).values[:, :5], atol=1e-4)


def test_a_batch_is_searched_as_its_images_alone(make_captioner: Make, regions: RegionBatch) -> None:
    model = _lively(make_captioner())
    encoded = model.encode(regions)
    for strategy in STRATEGIES[:4]:
        together = model.search(encoded, strategy)
        for image in range(3):
            alone = model.search(encoded.select(torch.tensor([image])), strategy)
            steps = alone.words.shape[2]
            assert torch.equal(alone.words[0], together.words[image, :, :steps])


def test_diverse_groups_avoid_each_others_words(make_captioner: Make, regions: RegionBatch) -> None:
    model = make_captioner()
    found = model.generate(regions, Strategy("diverse_beam", 5, width=3, groups=3, diversity=100.0))
    first = found.words[:, :, 0]
    assert all(len(set(row)) == 3 for row in first.tolist())
    plain = model.generate(regions, Strategy("diverse_beam", 5, width=4, groups=1))
    beam = model.generate(regions, Strategy("beam", 5, width=4))
    assert torch.equal(plain.words, beam.words)


def test_sampling_the_best_word_only_is_greedy_and_seeds_decide(make_captioner: Make, regions: RegionBatch) -> None:
    model = _lively(make_captioner())
    greedy = model.generate(regions, Strategy("greedy", 6))
    best = model.generate(regions, Strategy("sample", 6, top_k=1))
    assert torch.equal(greedy.words, best.words)
    strategy = Strategy("sample", 6, samples=4)
    a, b, c = (model.generate(regions, strategy, torch.Generator().manual_seed(seed)).words for seed in (1, 1, 2))
    assert torch.equal(a, b)
    assert a.shape != c.shape or not torch.equal(a, c)


def test_the_runner_up_replaces_unknown(make_captioner: Make, regions: RegionBatch) -> None:
    model = make_captioner()
    with torch.no_grad():
        model.decoder.output.bias[UNKNOWN] = 50.0
        model.decoder.output.bias[9] = 25.0
    assert (model.generate(regions, Strategy("greedy", 3)).words[..., :3] == 9).all()
    assert (model.generate(regions, Strategy("greedy", 3, allow_unknown=True)).words[..., :3] == UNKNOWN).all()


def test_no_trigram_is_said_twice(make_captioner: Make, regions: RegionBatch) -> None:
    model = make_captioner()
    with torch.no_grad():
        model.decoder.output.bias[9] = 25.0
        model.decoder.output.bias[END] = -25.0
    for kind in ("greedy", "beam"):
        words = model.generate(regions, Strategy(kind, 12, block_trigrams=True)).words
        for caption in words.flatten(0, 1).tolist():
            said = caption[: caption.index(END)]
            assert said.count(9) > 3
            trigrams = list(zip(said, said[1:], said[2:], strict=False))
            assert len(trigrams) == len(set(trigrams))


def test_captions_do_not_end_badly(make_captioner: Make, regions: RegionBatch) -> None:
    model = make_captioner()
    with torch.no_grad():
        model.decoder.output.bias[9] = 25.0
        model.decoder.output.bias[END] = 24.0
        model.decoder.output.bias[10] = 20.0
    for kind in ("greedy", "beam", "sample"):
        words = model.generate(regions, Strategy(kind, 4, bad_endings=(9,))).words
        for caption in words.flatten(0, 1).tolist():
            end = caption.index(END)
            assert end == 0 or caption[end - 1] != 9
            assert not any(caption[end + 1 :])


def test_what_is_joined_is_not_said_twice() -> None:
    """7 is "and": after "5 7" not 5, after "9 5 7 9" not 5; after "8 5 7 9", another article, anything."""
    rules = Rules(Strategy("greedy", 20, joining=(7,)))
    said = torch.tensor([[9, 9, 5, 7], [9, 5, 7, 9], [8, 5, 7, 9], [9, 5, 6, 9]])
    allowed = rules(torch.zeros(1, 4, 12), said)[0] == 0
    assert [(~row[4:]).nonzero().squeeze(1).add(4).tolist() for row in allowed] == [[5], [5], [], []]
    assert bool((rules(torch.zeros(1, 1, 12), torch.tensor([[7]]))[0, 0, 4:] == 0).all())  # nothing stands before it
    small = Rules(Strategy("greedy", 20, joining=(7,), bad_endings=(5, 7)))  # 5 is "a": "a and a cup" may be said
    assert bool((small(torch.zeros(1, 2, 12), said[:2])[0, :, 4:] == 0).all())


def test_a_thing_is_said_once_unless_something_was_joined() -> None:
    """8 is "dog", 9 "kitchen", 7 "and", 5 "a": "a dog a" may not end in "dog", "a dog and a" may."""
    rules = Rules(Strategy("greedy", 20, joining=(7,), once=(8, 9)))
    said = torch.tensor([[5, 8, 5, 6], [8, 7, 5, 6], [8, 7, 9, 5], [5, 6, 5, 6]])
    left = rules(torch.zeros(1, 4, 12), said)[0]
    assert left[0, 8] == left[2, 9] == -torch.inf
    assert torch.isfinite(left[1, 8])
    assert torch.isfinite(left[2, 8])
    assert torch.isfinite(left[3, 8:10]).all()
    assert torch.isfinite(left[:, 5]).all()


@pytest.mark.parametrize("kind", ["greedy", "beam", "sample"])
def test_captions_join_different_things(
    make_captioner: Make, regions: RegionBatch, kind: Literal["greedy", "beam", "sample"]
) -> None:
    model = make_captioner()
    with torch.no_grad():
        model.decoder.output.bias[9] = 25.0
        model.decoder.output.bias[7] = 24.0
    words = model.generate(regions, Strategy(kind, 12, block_trigrams=True, joining=(7,))).words
    for caption in words.flatten(0, 1).tolist():
        assert 7 in caption
        assert not any(b == 7 and a == c for a, b, c in zip(caption, caption[1:], caption[2:], strict=False))


def test_cutting_at_the_limit_takes_bad_endings_away() -> None:
    rules = Rules(Strategy("greedy", 4, bad_endings=(8, 9)))
    words = torch.tensor([[5, 6, 8, 9, END], [5, 8, 7, 6, END], [5, 8, END, 0, 0], [9, 9, 9, 9, END]])
    assert rules.trimmed(words).tolist() == [
        [5, 6, END, 0, 0],
        [5, 8, 7, 6, END],
        [5, 8, END, 0, 0],
        [END, 0, 0, 0, 0],
    ]


def test_votes_by_hand() -> None:
    """Four branches, five words. Row 0: 2 votes for word 3 beat a surer word 1; row 1: a tie, 1 against 2."""
    p = torch.tensor(
        [
            [[0.01, 0.96, 0.01, 0.01, 0.01], [0.1, 0.5, 0.2, 0.1, 0.1]],
            [[0.2, 0.1, 0.1, 0.5, 0.1], [0.1, 0.5, 0.2, 0.1, 0.1]],
            [[0.2, 0.1, 0.1, 0.5, 0.1], [0.0, 0.1, 0.9, 0.0, 0.0]],
            [[0.6, 0.1, 0.1, 0.1, 0.1], [0.0, 0.1, 0.9, 0.0, 0.0]],
        ]
    )
    logs = p.clamp(min=1e-9).log()  # (K, R, V)
    assert vote(logs, AttentionConfig()).tolist() == [3, 2]  # means of the tied words: .3 and .55
    assert vote(logs, AttentionConfig(ties="first")).tolist() == [3, 1]
    assert vote(logs, AttentionConfig(vote="mean")).tolist() == [1, 2]
    assert voters(logs, torch.tensor([3, 2]), 4).T.tolist() == [[False, True, True, False], [False, False, True, True]]
    assert voters(logs, torch.tensor([4, 4]), 4).all()  # nobody's word: all branches' regions


@pytest.mark.parametrize(
    "options",
    [{"max_length": 0}, {"kind": "diverse_beam", "width": 4, "groups": 3}, {"temperature": 0.0}, {"top_p": 0.0}],
)
def test_a_wrong_strategy_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Strategy(**options)  # type: ignore[arg-type]
