"""Paraphrase consistency: phrases of different captions that name the same thing must look at the same place.

Five people describe one photo; where two of them say "a dog" they mean, nearly always, the same one. The words around
it differ, so a grounder that answers differently is wrong at least once. No annotation of coreference is used: phrases
are taken as paraphrases when their head words have one lemma.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from deixis.data.batch import Batch
from deixis.grounding.base import WordGrounder
from deixis.objectives.base import Context, Objective
from deixis.processes import masked_mean
from deixis.text.vocabulary import UNKNOWN, Vocabulary


@dataclass(frozen=True, slots=True)
class ParaphraseOptions:
    """Which pairs count, and how many."""

    pairs: int = 400
    """Pairs in a step, drawn at random where there are more."""


class ParaphraseConsistency(Objective):
    """The symmetric divergence between the distributions of paraphrases over their image's regions.

    Ours; see the head of this file for why. Use together with any other objective of a grounder.

    >>> objective = ParaphraseConsistency(ParaphraseOptions(), vocabulary)
    >>> losses = objective(Context(grounder, batch))
    >>> losses["paraphrase_consistency"].backward()
    """

    trains = WordGrounder
    needs = frozenset({"phrases"})

    def __init__(self, options: ParaphraseOptions, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.options = options
        self.lemma: Tensor
        self.register_buffer("lemma", torch.tensor(vocabulary.lemma_ids), persistent=False)

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``paraphrase_consistency`` and the share of pairs that choose the same region."""
        model, batch = context.trained(WordGrounder), context.batch
        if batch.phrases is None or not len(batch.phrases.head):
            return {}
        first, second = paraphrases(batch, self.lemma)
        if len(first) > self.options.pairs:
            kept = torch.randperm(len(first), generator=context.generator)[: self.options.pairs].to(first.device)
            first, second = first[kept], second[kept]
        shares = torch.log_softmax(model.phrase_logits(batch), -1)  # (P, N)
        losses = symmetric_divergence(shares[first], shares[second])
        same = (shares[first].argmax(-1) == shares[second].argmax(-1)).float()
        counted = torch.ones_like(losses, dtype=torch.bool)
        return {"paraphrase_consistency": masked_mean(losses, counted), "_same_region": masked_mean(same, counted)}


def paraphrases(batch: Batch, lemma: Tensor) -> tuple[Tensor, Tensor]:
    """Return the pairs of phrases, of different captions of one image, whose known heads have one lemma, (R,), (R,)."""
    assert batch.phrases is not None
    caption = batch.phrases.caption
    head = lemma[batch.words[caption, batch.phrases.head]]
    image = batch.image_of[caption]
    pair = (head[:, None] == head) & (image[:, None] == image) & (caption[:, None] < caption) & (head != UNKNOWN)
    first, second = pair.nonzero(as_tuple=True)
    return first, second


def symmetric_divergence(a: Tensor, b: Tensor) -> Tensor:
    """Return (KL(a || b) + KL(b || a)) / 2 of log-probabilities, (R, N) -> (R,); padding, -inf in both, adds 0."""
    known = torch.isfinite(a) & torch.isfinite(b)
    a, b = a.masked_fill(~known, 0.0), b.masked_fill(~known, 0.0)  # before subtracting: -inf - -inf has no gradient
    return ((a.exp() - b.exp()) * (a - b)).sum(-1) / 2
