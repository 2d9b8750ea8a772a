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

from deixis.data.batch import Batch, RegionBatch, WordKind
from deixis.data.sizes import InputSizes
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
    form: Literal["paper", "code"] = "paper"
    """Over which words similarities are normalised, in training and answering: ``paper`` all of them, so that the nouns
    count in the mean of equation 8 alone; ``code`` the words that count, as the released program does."""
    attend_over: Literal["form", "counted", "all"] = "form"
    """The same for the attention that answers, where it should differ from training. Among the two or three nouns of a
    caption it hides how much a region is like any of them (docs/reports/grounding.md)."""
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

    def normalised_over(self, batch: Batch) -> Tensor:
        """Return which words the similarities of a region are compared among, (C, T) (below equation 4)."""
        return real_words(batch) if self.config.form == "paper" else self.counted(batch)

    def table(self, batch: Batch) -> Tensor:
        """Return the score S of every image with every caption, (B, C) (equations 4 to 8)."""
        words, over, counted = self._needed_words(batch)
        return self.scores(self.regions(batch.regions), batch.regions.mask, words, over, counted)

    def scores(
        self, regions: Tensor, region_mask: Tensor, words: Tensor, over: Tensor, counted: Tensor | None = None
    ) -> Tensor:
        """Return the table from unit vectors, (B, N, D), (B, N), (C, T, D), (C, T), (C, T) -> (B, C).

        ``over`` are the words that similarities are normalised over, ``counted`` those that count in the score.
        """
        counted = over if counted is None else counted
        similarity = torch.einsum("ctd,bnd->bctn", words, regions)  # (B, C, T, N)
        return self._pair_scores(
            similarity, regions.unsqueeze(1), region_mask.unsqueeze(1), words.unsqueeze(0), over.unsqueeze(0), counted
        )

    def match(self, batch: Batch) -> Tensor:
        """Return the score of each caption with its own image, (C,)."""
        regions = self.regions(batch.regions)[batch.image_of]
        words, over, counted = self._needed_words(batch)
        similarity = words @ regions.transpose(1, 2)  # (C, T, N)
        return self._pair_scores(similarity, regions, batch.regions.mask[batch.image_of], words, over, counted)

    def word_scores(self, batch: Batch) -> Tensor:
        """Return the logits of equation 5 for each word and region of its image, (C, T, N).

        A word compared with no other would look at all regions alike, whatever it says: there its bare similarity
        answers.
        """
        config = self.config
        similarity = self.words(batch) @ self.regions(batch.regions)[batch.image_of].transpose(1, 2)
        asked = {"form": self.normalised_over, "counted": self.counted, "all": real_words}[config.attend_over]
        over = asked(batch)  # (C, T)
        normalised = cross_attention.normalise(similarity, over, config.normalisation)
        alone = (over.sum(1) < 2).view(-1, 1, 1)
        normalised = torch.where(alone, similarity, normalised)
        mask = batch.regions.mask[batch.image_of].unsqueeze(1)  # (C, 1, N)
        return (config.temperature * normalised).masked_fill(~mask, -torch.inf)

    def _needed_words(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return the vectors of the words that take part, those to compare among, and those that count.

        (C, T', D), (C, T') and (C, T'). In the released form only words that count take part, a third of a caption:
        they are moved to the front.
        """
        words, over, counted = self.words(batch), self.normalised_over(batch), self.counted(batch)
        most = int(over.sum(1).max())
        front = torch.argsort(over, dim=1, descending=True, stable=True)[:, :most]  # (C, T')
        kept = words.gather(1, front.unsqueeze(-1).expand(-1, -1, words.shape[-1]))
        return kept, over.gather(1, front), counted.gather(1, front)

    def _pair_scores(
        self, similarity: Tensor, regions: Tensor, region_mask: Tensor, words: Tensor, over: Tensor, counted: Tensor
    ) -> Tensor:
        """Equations 4 to 8 for pairs: (..., T, N), (..., N, D), (..., N), (..., T, D), (..., T), (C, T) -> (...)."""
        config = self.config
        if config.direction == "image-to-text":  # regions ask, and are answered by the words that count
            similarity = similarity.transpose(-1, -2)
            normalised = cross_attention.normalise(similarity, region_mask, config.normalisation)
            weights = cross_attention.attention(normalised, counted, config.temperature)
            relevances = cross_attention.relevance(weights, similarity, words @ words.transpose(-1, -2))
            return cross_attention.pool(relevances, region_mask.expand_as(relevances), config.pooling, config.sharpness)
        normalised = cross_attention.normalise(similarity, over, config.normalisation)
        weights = cross_attention.attention(normalised, region_mask, config.temperature)
        relevances = cross_attention.relevance(weights, similarity, regions @ regions.transpose(-1, -2))
        return cross_attention.pool(relevances, counted.expand_as(relevances), config.pooling, config.sharpness)
