"""A grounder that was trained with another vocabulary: words are looked up by their spelling before it reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from deixis.data.batch import Batch
from deixis.interfaces import Grounder
from deixis.text.vocabulary import Vocabulary
from deixis.types import GroundedPhrases, Regions, Sentence


class TranslatedGrounder(Grounder):
    """Lets ``grounder``, who knows the words of ``known``, teach or reward a captioner with the words of ``spoken``.

    Words that only the captioner knows are the unknown word to the grounder.
    """

    def __init__(self, grounder: Grounder, known: Vocabulary, spoken: Vocabulary) -> None:
        self.grounder = grounder
        self.table = torch.tensor(spoken.ids_in(known))  # (V,)

    def translated(self, batch: Batch) -> Batch:
        """Return the batch in the grounder's words."""
        return replace(batch, words=self.table.to(batch.words.device)[batch.words])

    def attention(self, batch: Batch) -> Tensor:
        """Return each word's distribution over regions, (C, T, N)."""
        return self.grounder.attention(self.translated(batch))

    def match(self, batch: Batch) -> Tensor:
        """Return how well each caption fits its image, (C,)."""
        return self.grounder.match(self.translated(batch))

    def ground(self, regions: Regions, sentence: Sentence, phrases: Sequence[int] | None = None) -> GroundedPhrases:
        """Find the boxes of the sentence's phrases; a sentence is text, so nothing is translated."""
        return self.grounder.ground(regions, sentence, phrases)
