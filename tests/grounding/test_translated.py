from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from deixis.data.batch import Batch
from deixis.grounding.translated import TranslatedGrounder
from deixis.text.vocabulary import END, PAD, UNKNOWN, Entry, Vocabulary


def vocabulary(*words: str) -> Vocabulary:
    return Vocabulary([Entry(word, 5, "NN", word, True) for word in words])


def test_words_are_looked_up_by_spelling() -> None:
    known, spoken = vocabulary("cat", "hat", "dog"), vocabulary("dog", "zebra", "cat")
    seen: list[Any] = []

    def match(batch: Batch) -> torch.Tensor:
        seen.append(batch.words.tolist())
        return torch.zeros(len(batch))

    grounder = TranslatedGrounder(SimpleNamespace(match=match, attention=match), known, spoken)
    words = torch.tensor([[spoken.id("dog"), spoken.id("zebra"), spoken.id("cat"), END, PAD]])
    zero = torch.zeros(1, 5, dtype=torch.long)
    batch = Batch(regions=None, words=words, image_of=zero[0, :1], tags=zero)  # type: ignore[arg-type]
    assert grounder.match(batch).shape == (1,)
    grounder.attention(batch)
    assert seen == [[[known.id("dog"), UNKNOWN, known.id("cat"), END, PAD]]] * 2
    assert torch.equal(batch.words, words)
