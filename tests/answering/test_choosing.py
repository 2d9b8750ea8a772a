"""A grounder chooses among the captions of a beam: the order by hand, and nothing but the order changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from deixis.answering.choosing import Chooser
from deixis.captioning import Captioner
from deixis.captioning.search.strategy import Generated, Strategy
from deixis.data.batch import Batch, RegionBatch
from deixis.text.vocabulary import END, Entry, Vocabulary


class CountsWord:
    """Matches a caption by how often it says one word; reads it with its own ids."""

    def __init__(self, vocabulary: Vocabulary, word: str) -> None:
        self.id = vocabulary.id(word)
        self.seen: list[Batch] = []

    def match(self, batch: Batch) -> Tensor:
        self.seen.append(batch)
        return (batch.words == self.id).sum(1).float()

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"choosing should not ask for {name}")


@pytest.fixture
def other_words(vocabulary: Vocabulary) -> Vocabulary:
    """The same words under other ids, one of them missing."""
    return Vocabulary(reversed([entry for entry in vocabulary.entries if entry.word != "hat"]))


def said(vocabulary: Vocabulary, *captions: str) -> Generated:
    rows = [[*(vocabulary.id(word) for word in caption.split()), END] for caption in captions]
    longest = max(map(len, rows))
    words = torch.tensor([row + [0] * (longest - len(row)) for row in rows])[None]  # (1, G, T)
    scores = torch.tensor([[-1.0, -2.0, -3.5]])
    marks = torch.arange(len(rows)).float().view(1, -1, 1).expand(words.shape)  # (1, G, T) says which caption it was
    attention = marks[None, ..., None].expand(*(1, *words.shape), 4)
    logs = scores.unsqueeze(-1) * (words != 0)  # every word of a caption has the same
    return Generated(words, logs, scores * 9, attention, marks[None] > 0)


def test_order_by_hand(
    vocabulary: Vocabulary, other_words: Vocabulary, make_regions: Callable[..., RegionBatch]
) -> None:
    found = said(vocabulary, "a man with a hat", "a dog", "a dog and a dog")
    judge = CountsWord(other_words, "dog")
    chosen = Chooser(judge, other_words, vocabulary, 1.5)(found, make_regions(1))
    # per word -1, -2 and -3.5; 1.5 for every dog; and 2.5 times as much back for the second one
    assert chosen.scores.tolist() == [[-0.5, -1.0, -4.25]]
    assert [vocabulary.decode(row) for row in chosen.words[0].tolist()] == [
        ["a", "dog"],
        ["a", "man", "with", "a", "hat"],
        ["a", "dog", "and", "a", "dog"],
    ]
    order = torch.tensor([1.0, 0.0, 2.0])
    assert chosen.log_probs[0, :, 0].tolist() == [-2.0, -1.0, -3.5]
    assert torch.equal(chosen.attention[0, 0, :, 0, 0], order)
    assert chosen.voted[0, 0, :, 0].tolist() == [True, False, True]
    assert other_words.decode(judge.seen[0].words[0].tolist())[:2] == ["a", "man"], "in the grounder's words"
    assert other_words.words[judge.seen[0].words[0, 4]] == "<unk>", "what it does not know, it is told so"


def test_no_weight_and_one_caption_change_nothing(
    vocabulary: Vocabulary, make_regions: Callable[..., RegionBatch]
) -> None:
    found = said(vocabulary, "a man", "a dog", "a dog and a dog")
    judge = CountsWord(vocabulary, "dog")
    assert Chooser(judge, vocabulary, vocabulary, 0.0)(found, make_regions(1)) is found
    greedy = Generated(
        found.words[:, :1],
        found.log_probs[:, :1],
        found.scores[:, :1],
        found.attention[:, :, :1],
        found.voted[:, :, :1],
    )
    assert Chooser(judge, vocabulary, vocabulary, 1.0)(greedy, make_regions(1)) is greedy
    assert not judge.seen


def test_batch_equals_single(
    vocabulary: Vocabulary, make_captioner: Callable[..., Captioner], make_regions: Callable[..., RegionBatch]
) -> None:
    captioner, regions = make_captioner(), make_regions(3)
    chooser = Chooser(CountsWord(vocabulary, "dog"), vocabulary, vocabulary, 3.0)
    generated = captioner.generate(regions, Strategy("beam", 6, width=4))
    together = chooser(generated, regions)
    for at in range(3):
        one = Generated(
            generated.words[at : at + 1],
            generated.log_probs[at : at + 1],
            generated.scores[at : at + 1],
            generated.attention[:, at : at + 1],
            generated.voted[:, at : at + 1],
        )
        alone = chooser(one, make_regions(1))
        assert torch.equal(alone.words[0], together.words[at])
    kept = {tuple(row) for row in generated.words[1].tolist()}
    assert {tuple(row) for row in together.words[1].tolist()} == kept, "the same captions in another order"


def test_only_nouns_count_as_repeated(vocabulary: Vocabulary) -> None:
    chooser = Chooser(CountsWord(vocabulary, "dog"), vocabulary, vocabulary, 1.0)
    found = said(vocabulary, "a dog and a dog and a dog", "a man with a hat and a ball", "the red red dog")
    assert chooser.repeated(found.words).tolist() == [[2, 0, 0]]


def test_one_and_many_are_one_noun() -> None:
    words = Vocabulary(
        [Entry("a", 9, "DT", "a"), Entry("flowers", 8, "NNS", "flower"), Entry("flower", 7, "NN", "flower")]
    )
    chooser = Chooser(CountsWord(words, "flower"), words, words, 1.0)
    found = said(words, "a flower a flowers", "a flower", "flowers")
    assert chooser.repeated(found.words).tolist() == [[1, 0, 0]]
