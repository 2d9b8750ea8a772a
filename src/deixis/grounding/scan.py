"""SCAN and POS-SCAN: an image-text matcher whose attention grounds words.

SCAN (Lee et al., ECCV 2018); POS-SCAN (Zhou et al., CVPR 2020, section 3.1, equations 1 to 8). Which words count is the
whole difference: all of them, or those of chosen kinds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.captioning.model.config import InputSizes
from deixis.data.batch import Batch, RegionBatch, WordKind
from deixis.grounding import cross_attention
from deixis.grounding.base import AnswerOptions, WordGrounder, real_words
from deixis.grounding.cross_attention import Normalisation, Pooling
from deixis.text.vocabulary import UNKNOWN, Vocabulary

Kind = Literal["noun", "verb", "adjective", "other"]


@dataclass(frozen=True, slots=True)
class ScanConfig:
    """Defaults are POS-SCAN's; ``words: []`` counts all words and is plain SCAN."""

    width: int = 1024
    word_width: int = 300
    direction: Literal["text-to-image", "image-to-text"] = "text-to-image"
    words: tuple[Kind, ...] = ("noun",)
    """Kinds of words that count (equation 8); a caption without any of them counts all its words."""
    normalisation: Normalisation = "clipped-l2"
    """``leaky-l2`` is the released code's."""
    attend_over: Literal["counted", "all"] = "counted"
    """Over which words the attention that answers is normalised: those that count, as in training, or all. Among the
    two or three nouns of a caption it hides how much a region is like any of them (docs/reports/grounding.md)."""
    pooling: Pooling = "mean"
    temperature: float = 9.0
    sharpness: float = 6.0
    """Of ``logsumexp`` pooling."""
    location: bool = False
    """Let the place and size of a region take part in its vector; SCAN does not."""
    dropout: float = 0.0
    answers: AnswerOptions = field(default_factory=AnswerOptions)


class Scan(WordGrounder):
    """Region and word vectors in one space, compared by stacked cross attention.

    >>> scores = scan.table(batch)  # (B, C) every image with every caption
    """

    def __init__(self, config: ScanConfig, sizes: InputSizes, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary, config.answers)
        self.config = config
        self.see = nn.Linear(sizes.features + (5 if config.location else 0), config.width)
        self.embed = nn.Embedding(sizes.words, config.word_width, padding_idx=0)
        self.read = nn.GRU(config.word_width, config.width, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(config.dropout)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)
        nn.init.xavier_uniform_(self.see.weight)
        nn.init.zeros_(self.see.bias)

    def regions(self, regions: RegionBatch) -> Tensor:
        """Return the unit vector of each region, (B, N, D) (equation 1)."""
        features = regions.features
        if self.config.location:
            boxes = regions.boxes_normalised
            area = ((boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])).unsqueeze(-1)
            features = torch.cat([features, boxes, area], -1)
        return F.normalize(self.see(self.drop(features)), dim=-1)

    def words(self, batch: Batch) -> Tensor:
        """Return the unit vector of each word, the mean of both reading directions, (C, T, D) (equations 2 and 3)."""
        lengths = real_words(batch).sum(1).clamp(min=1).cpu()
        embedded = self.drop(self.embed(batch.words))
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(
            self.read(packed)[0], batch_first=True, total_length=batch.words.shape[1]
        )
        forward, backward = states.chunk(2, -1)
        return F.normalize((forward + backward) / 2, dim=-1)

    def counted(self, batch: Batch) -> Tensor:
        """Return which words count, (C, T): those of the chosen kinds, or all of a caption that has none."""
        real = real_words(batch)
        if not self.config.words:
            return real
        kinds = torch.tensor([WordKind[kind.upper()] for kind in self.config.words], device=batch.tags.device)
        chosen = real & torch.isin(batch.tags, kinds) & (batch.words != UNKNOWN)
        return torch.where(chosen.any(1, keepdim=True), chosen, real)

    def table(self, batch: Batch) -> Tensor:
        """Return the score S of every image with every caption, (B, C) (equations 4 to 8)."""
        return self.scores(self.regions(batch.regions), batch.regions.mask, *self._counted_words(batch))

    def scores(self, regions: Tensor, region_mask: Tensor, words: Tensor, word_mask: Tensor) -> Tensor:
        """Return the table from unit vectors, (B, N, D), (B, N), (C, T, D), (C, T) -> (B, C)."""
        similarity = torch.einsum("ctd,bnd->bctn", words, regions)  # (B, C, T, N)
        return self._pair_scores(
            similarity, regions.unsqueeze(1), region_mask.unsqueeze(1), words.unsqueeze(0), word_mask.unsqueeze(0)
        )

    def match(self, batch: Batch) -> Tensor:
        """Return the score of each caption with its own image, (C,)."""
        regions = self.regions(batch.regions)[batch.image_of]
        words, counted = self._counted_words(batch)
        similarity = words @ regions.transpose(1, 2)  # (C, T, N)
        return self._pair_scores(similarity, regions, batch.regions.mask[batch.image_of], words, counted)

    def word_scores(self, batch: Batch) -> Tensor:
        """Return the logits of equation 5 for each word and region of its image, (C, T, N)."""
        similarity = self.words(batch) @ self.regions(batch.regions)[batch.image_of].transpose(1, 2)
        over = self.counted(batch) if self.config.attend_over == "counted" else real_words(batch)
        normalised = cross_attention.normalise(similarity, over, self.config.normalisation)
        mask = batch.regions.mask[batch.image_of].unsqueeze(1)  # (C, 1, N)
        return (self.config.temperature * normalised).masked_fill(~mask, -torch.inf)

    def _counted_words(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the vectors of the words that count, moved to the front, and which they are, (C, T', D) and (C, T').

        Only they enter a score, and of a caption's words the nouns are a third.
        """
        words, counted = self.words(batch), self.counted(batch)
        most = int(counted.sum(1).max())
        front = torch.argsort(counted, dim=1, descending=True, stable=True)[:, :most]  # (C, T')
        return words.gather(1, front.unsqueeze(-1).expand(-1, -1, words.shape[-1])), counted.gather(1, front)

    def _pair_scores(
        self, similarity: Tensor, regions: Tensor, region_mask: Tensor, words: Tensor, word_mask: Tensor
    ) -> Tensor:
        config = self.config
        items, item_mask, askers = regions, region_mask, word_mask
        if config.direction == "image-to-text":
            similarity = similarity.transpose(-1, -2)
            items, item_mask, askers = words, word_mask, region_mask
        normalised = cross_attention.normalise(similarity, askers, config.normalisation)
        weights = cross_attention.attention(normalised, item_mask, config.temperature)
        gram = items @ items.transpose(-1, -2)
        relevances = cross_attention.relevance(weights, similarity, gram)
        return cross_attention.pool(relevances, askers.expand_as(relevances), config.pooling, config.sharpness)
