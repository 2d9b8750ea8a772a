"""MAF: regions described by what they look like and by their detector labels, phrases read with the image in view.

Wang et al., *MAF: Multimodal Alignment Framework for Weakly-Supervised Phrase Grounding*, EMNLP 2020. A region's vector
is its projected feature plus the embedding of its detector label, which lives in the space of words; so a phrase that
names a label is grounded before any training. The words of a phrase are weighted by how well any region shows them.
The idea is rebuilt on our regions; differences: labels are expectations over the detector's classes rather than the
first one, words start at random rather than from GloVe, and padding is masked everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from deixis.data.batch import Batch, PhraseBatch, RegionBatch
from deixis.data.sizes import InputSizes
from deixis.errors import DeixisError
from deixis.grounding.base import AnswerOptions, WordGrounder
from deixis.text.vocabulary import END, PAD, UNKNOWN, Vocabulary

LABEL_WORDS = 3
PHRASES_AT_ONCE = 200
ARTICLES = ("a", "an", "the")


@dataclass(frozen=True, slots=True)
class MafConfig:
    """Options of the model."""

    width: int = 256
    labels: bool = True
    """Whether the embedding of the detector's label is part of a region."""
    answers: AnswerOptions = field(default_factory=AnswerOptions)


class Maf(WordGrounder):
    """Words and regions in one space, compared by scaled products."""

    def __init__(
        self, config: MafConfig, sizes: InputSizes, vocabulary: Vocabulary, detector_classes: Sequence[str] = ()
    ) -> None:
        super().__init__(vocabulary, config.answers)
        self.config = config
        if config.labels and not sizes.classes:
            raise DeixisError("these regions have no detector labels: set model.labels to false")
        self.words = nn.Embedding(len(vocabulary), config.width)
        nn.init.normal_(self.words.weight, std=config.width**-0.25)  # products of a word with itself begin near 1
        self.look = nn.Linear(sizes.features, config.width)
        self.label_words: Tensor
        self.silent: Tensor
        self.register_buffer("label_words", label_words(detector_classes, sizes.classes, vocabulary))
        silent = [word in ARTICLES or at in (PAD, END) for at, word in enumerate(vocabulary.words)]
        self.register_buffer("silent", torch.tensor(silent), persistent=False)

    def regions(self, regions: RegionBatch) -> Tensor:
        """Return the vectors of regions, (B, N, D)."""
        seen: Tensor = self.look(regions.features)
        if not self.config.labels:
            return seen
        if regions.class_probs is None:
            raise DeixisError("this grounder was trained on regions with detector labels, and these have none")
        known = (self.label_words != PAD).unsqueeze(-1)
        names = (self.words(self.label_words) * known).sum(1) / known.sum(1).clamp(min=1)  # (classes, D)
        share = regions.class_probs / regions.class_probs.sum(-1, keepdim=True).clamp(min=0.05)
        described: Tensor = seen + share @ names
        return described

    def phrase_words(self, batch: Batch, phrases: PhraseBatch) -> tuple[Tensor, Tensor]:
        """Return the words that count of each phrase, (P, T), and which positions hold one."""
        words = batch.words[phrases.caption]
        place = torch.arange(words.shape[1], device=words.device)
        inside = (place >= phrases.first.unsqueeze(1)) & (place < phrases.last.unsqueeze(1))
        chosen = inside & ~self.silent[words]
        chosen = torch.where(chosen.any(1, keepdim=True), chosen, inside)
        return words, chosen

    def phrase_similarities(self, batch: Batch, phrases: PhraseBatch) -> Tensor:
        """Return the similarity of every phrase with every region of every image, (P, B, N), -inf for padding."""
        words, chosen = self.phrase_words(batch, phrases)
        row, _ = chosen.nonzero(as_tuple=True)  # (M,) the phrase of each word
        seen = self.regions(batch.regions)
        sims = torch.einsum("md,bnd->mbn", self.words(words[chosen]), seen).float() / math.sqrt(self.config.width)
        mask = batch.regions.mask
        best = sims.masked_fill(~mask, -torch.inf).amax(-1)  # (M, B) how well any region shows the word
        weight = torch.exp(best - best.amax())
        total = weight.new_zeros(len(chosen), weight.shape[1]).index_add(0, row, weight)
        weight = weight / total[row].clamp(min=1e-30)
        pooled = sims.new_zeros(len(chosen), *sims.shape[1:]).index_add(0, row, sims * weight.unsqueeze(-1))
        return pooled.masked_fill(~mask, -torch.inf)

    def caption_similarities(self, batch: Batch) -> Tensor:
        """Return how well each caption fits each image, the mean over its phrases of their best region, (C, B)."""
        if batch.phrases is None:
            raise DeixisError("this batch has no phrases to compare")
        best = self.phrase_similarities(batch, batch.phrases).amax(-1)  # (P, B)
        total = best.new_zeros(len(batch), best.shape[1]).index_add(0, batch.phrases.caption, best)
        count = torch.bincount(batch.phrases.caption, minlength=len(batch)).clamp(min=1)
        return total / count.unsqueeze(1)

    def phrase_logits(self, batch: Batch) -> Tensor:
        """Return the log-probabilities of every region for every phrase, with the priors of the answer, (P, N)."""
        if batch.phrases is None:
            raise DeixisError("this batch has no phrases to ground")
        phrases, regions = batch.phrases, batch.regions
        image = batch.image_of[phrases.caption]
        none = regions.objectness.new_zeros(0, regions.mask.shape[1])
        parts = [self._own_similarities(batch, phrases, at) for at in range(0, len(image), PHRASES_AT_ONCE)]
        scores = torch.log_softmax(torch.cat([none, *parts]), -1)
        prior = self.region_prior(regions)
        scores = scores if prior is None else scores + prior[image]
        return scores.masked_fill(~regions.mask[image], -torch.inf)

    def _own_similarities(self, batch: Batch, phrases: PhraseBatch, start: int) -> Tensor:
        """Return the similarities of some phrases with the regions of their own image, (PHRASES_AT_ONCE, N)."""
        rows = slice(start, start + PHRASES_AT_ONCE)
        some = PhraseBatch(phrases.caption[rows], phrases.first[rows], phrases.last[rows], phrases.head[rows])
        image = batch.image_of[some.caption]
        return self.phrase_similarities(batch, some)[torch.arange(len(image), device=image.device), image]

    def word_scores(self, batch: Batch) -> Tensor:
        """Return the similarity of each word with each region of its image, (C, T, N)."""
        seen = self.regions(batch.regions)[batch.image_of]  # (C, N, D)
        known = (batch.words != UNKNOWN).unsqueeze(-1)
        sims: Tensor = (self.words(batch.words) * known) @ seen.transpose(1, 2) / math.sqrt(self.config.width)
        return sims.masked_fill(~batch.regions.mask[batch.image_of].unsqueeze(1), -torch.inf)

    def match(self, batch: Batch) -> Tensor:
        """Return how well each caption fits its image, (C,)."""
        if batch.phrases is not None and len(batch.phrases.head):
            return self.caption_similarities(batch)[torch.arange(len(batch)), batch.image_of]
        return self.word_scores(batch).amax(-1).mean(-1)


def label_words(names: Sequence[str], classes: int, vocabulary: Vocabulary) -> Tensor:
    """Return the known words of each detector label, its last ones first in line, padded, (classes, LABEL_WORDS)."""
    table = torch.full((classes, LABEL_WORDS), PAD)
    for row, name in enumerate(names):
        known = [vocabulary.id(word) for word in name.lower().split() if word in vocabulary][-LABEL_WORDS:]
        table[row, : len(known)] = torch.tensor(known, dtype=torch.long)
    return table
