"""InfoGround: word-region attention trained so that an image tells as much as possible about each word.

Gupta et al., *Contrastive Learning for Weakly Supervised Phrase Grounding*, ECCV 2020, section 2.3: queries and values
of words, keys and values of regions; the attention of equation 6 grounds, the compatibility below equation 7 is
contrasted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.data.batch import Batch, RegionBatch, WordKind
from deixis.data.sizes import InputSizes
from deixis.grounding.base import AnswerOptions, WordGrounder, real_words
from deixis.text.negatives import NOT_NOUNS
from deixis.text.vocabulary import UNKNOWN, Vocabulary
from deixis.text.word_encoders import WordEncoderConfig, build_word_encoder


@dataclass(frozen=True, slots=True)
class InfoGroundConfig:
    """Defaults are the paper's: one hidden layer as wide as its input, 384 outputs."""

    width: int = 384
    hidden_layers: int = 1
    """0: linear maps; 1 and 2 hidden layers with BatchNorm and ReLU (figure 4)."""
    location: bool = False
    """Let the place and size of a region take part; the paper does not."""
    encoder: WordEncoderConfig = field(default_factory=WordEncoderConfig)
    answers: AnswerOptions = field(default_factory=AnswerOptions)


class MaskedMlp(nn.Module):
    """An MLP over the real rows of a padded tensor: padding never enters the statistics of its BatchNorm."""

    def __init__(self, inputs: int, outputs: int, hidden_layers: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for _ in range(hidden_layers):
            layers += [nn.Linear(inputs, inputs), nn.BatchNorm1d(inputs), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Linear(inputs, outputs))

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return (..., outputs) for (..., inputs); zeros where the mask (...) is False."""
        rows = values[mask]
        for layer in self.layers:
            # one row has no variance: it is normalised by what the other batches taught
            alone = isinstance(layer, nn.BatchNorm1d) and layer.training and len(rows) < 2
            rows = self._normalised(layer, rows) if alone else layer(rows)
        out = rows.new_zeros(*mask.shape, rows.shape[-1])
        out[mask] = rows
        return out

    @staticmethod
    def _normalised(layer: nn.Module, rows: Tensor) -> Tensor:
        assert isinstance(layer, nn.BatchNorm1d)
        return F.batch_norm(rows, layer.running_mean, layer.running_var, layer.weight, layer.bias, eps=layer.eps)


class InfoGround(WordGrounder):
    """Query-key-value attention between words and regions (section 2.3)."""

    not_nouns: Tensor

    def __init__(self, config: InfoGroundConfig, sizes: InputSizes, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary, config.answers)
        self.config = config
        self.encoder = build_word_encoder(config.encoder, vocabulary)
        looked, read = sizes.features + (5 if config.location else 0), self.encoder.width
        self.key = MaskedMlp(looked, config.width, config.hidden_layers)
        self.region_value = MaskedMlp(looked, config.width, config.hidden_layers)
        self.query = MaskedMlp(read, config.width, config.hidden_layers)
        self.word_value = MaskedMlp(read, config.width, config.hidden_layers)
        wrong = sorted({vocabulary.id(word) for word in NOT_NOUNS} - {UNKNOWN})
        self.register_buffer("not_nouns", torch.tensor(wrong, dtype=torch.long), persistent=False)

    def start(self) -> None:
        """Read the pre-trained word encoder; called for a new model, not for one that is loaded."""
        self.encoder.start()

    def describe_regions(self, regions: RegionBatch) -> tuple[Tensor, Tensor]:
        """Return keys and values of the regions, (B, N, D) each."""
        seen = self.seen(regions)
        return self.key(seen, regions.mask), self.region_value(seen, regions.mask)

    def seen(self, regions: RegionBatch) -> Tensor:
        """Return what the model sees of regions: their features, and place and size if asked for, (B, N, S)."""
        if not self.config.location:
            return regions.features
        boxes = regions.boxes_normalised
        area = ((boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])).unsqueeze(-1)
        return torch.cat([regions.features, boxes, area], -1)

    def describe_words(self, words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and values of encoded words (..., W) where the mask (...) is True, (..., D) each."""
        return self.query(words, mask), self.word_value(words, mask)

    def compatibility(
        self, words: tuple[Tensor, Tensor], regions: tuple[Tensor, Tensor], region_mask: Tensor
    ) -> Tensor:
        """Return phi of every word with every image, (M, D) and (B, N, D) -> (M, B) (equations 6 and 7).

        The attended vector is not formed: v_w · sum(a v_r) is sum(a (v_w · v_r)).
        """
        (query, word_value), (key, region_value) = words, regions
        logits = torch.einsum("md,bnd->mbn", query, key) / math.sqrt(self.config.width)
        attention = torch.softmax(logits.masked_fill(~region_mask, -torch.inf), -1)  # (M, B, N)
        return (attention * torch.einsum("md,bnd->mbn", word_value, region_value)).sum(-1)

    def own_compatibility(
        self, words: tuple[Tensor, Tensor], regions: tuple[Tensor, Tensor], region_mask: Tensor
    ) -> Tensor:
        """Return phi of words with one image each, (C, M, D) and (C, N, D) -> (C, M)."""
        (query, word_value), (key, region_value) = words, regions
        logits = query @ key.transpose(1, 2) / math.sqrt(self.config.width)  # (C, M, N)
        attention = torch.softmax(logits.masked_fill(~region_mask.unsqueeze(1), -torch.inf), -1)
        return (attention * (word_value @ region_value.transpose(1, 2))).sum(-1)

    def word_scores(self, batch: Batch) -> Tensor:
        """Return s of equation 6 for each word and region of its image, (C, T, N)."""
        real = real_words(batch)
        query: Tensor = self.query(self.encoder(batch.words, real), real)  # (C, T, D)
        regions = batch.regions
        key: Tensor = self.key(self.seen(regions), regions.mask)[batch.image_of]  # (C, N, D)
        mask = batch.regions.mask[batch.image_of].unsqueeze(1)
        return (query @ key.transpose(1, 2) / math.sqrt(self.config.width)).masked_fill(~mask, -torch.inf)

    def match(self, batch: Batch) -> Tensor:
        """Return the mean compatibility of a caption's nouns and adjectives with its image, (C,)."""
        real = real_words(batch)
        chosen = self.content_words(batch)
        chosen = torch.where(chosen.any(1, keepdim=True), chosen, real)
        words = self.describe_words(self.encoder(batch.words, real), real)
        key, value = self.describe_regions(batch.regions)
        of = batch.image_of
        phi = self.own_compatibility(words, (key[of], value[of]), batch.regions.mask[of])  # (C, T)
        return (phi * chosen).sum(1) / chosen.sum(1).clamp(min=1)

    def content_words(self, batch: Batch) -> Tensor:
        """Return which words are known nouns or adjectives, (C, T): what the image loss contrasts (section 2.5)."""
        return self.nouns(batch) | (self._known(batch) & (batch.tags == WordKind.ADJECTIVE))

    def nouns(self, batch: Batch) -> Tensor:
        """Return which words are known nouns, (C, T)."""
        return self._known(batch) & (batch.tags == WordKind.NOUN)

    def _known(self, batch: Batch) -> Tensor:
        """Return which words are known and not among those that taggers wrongly call nouns, (C, T)."""
        return real_words(batch) & (batch.words != UNKNOWN) & ~torch.isin(batch.words, self.not_nouns)
