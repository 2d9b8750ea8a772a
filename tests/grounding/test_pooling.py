from __future__ import annotations

import pytest
import torch

from deixis.data.batch import PhraseBatch
from deixis.grounding.pooling import phrase_scores

SCORES = torch.tensor(
    [
        [[0.1, 0.2], [0.9, 0.3], [0.2, 0.8], [7.0, 7.0]],
        [[0.4, 0.6], [0.5, 0.1], [7.0, 7.0], [7.0, 7.0]],
    ]
)  # two captions, four words, two regions
PHRASES = PhraseBatch(
    caption=torch.tensor([0, 0, 1]),
    first=torch.tensor([0, 1, 0]),
    last=torch.tensor([2, 3, 2]),
    head=torch.tensor([1, 2, 1]),
)


def test_pooling_by_hand() -> None:
    torch.testing.assert_close(
        phrase_scores(SCORES, PHRASES, "max"), torch.tensor([[0.9, 0.3], [0.9, 0.8], [0.5, 0.6]])
    )
    expected = torch.tensor([[0.5, 0.25], [0.55, 0.55], [0.45, 0.35]])
    torch.testing.assert_close(phrase_scores(SCORES, PHRASES, "mean"), expected)
    torch.testing.assert_close(
        phrase_scores(SCORES, PHRASES, "head"), torch.tensor([[0.9, 0.3], [0.2, 0.8], [0.5, 0.1]])
    )


def test_only_chosen_words_count_unless_a_phrase_has_none() -> None:
    nouns = torch.tensor([[True, False, False, False], [False, False, True, True]])
    got = phrase_scores(SCORES, PHRASES, "max", nouns)
    assert got[0].tolist() == pytest.approx([0.1, 0.2])  # its only chosen word
    assert got[1].tolist() == pytest.approx([0.9, 0.8])  # none chosen: all its words
    assert got[2].tolist() == pytest.approx([0.5, 0.6])  # words outside the phrase never count
