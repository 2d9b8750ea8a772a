"""Cyclical training (paper 1): decode, localize each generated word, reconstruct the caption from what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from deixis.captioning.model.additive import masked_softmax
from deixis.captioning.model.captioner import Captioner
from deixis.captioning.model.decoder import Attend
from deixis.captioning.model.encoder import Encoded
from deixis.data.batch import Batch, WordKind
from deixis.objectives.base import Context, Need, Objective
from deixis.objectives.targets import word_targets
from deixis.processes import masked_mean


@dataclass(frozen=True, slots=True)
class CyclicalOptions:
    """The paper's variants (tables 4, 6 and 9)."""

    localizer: Literal["linear", "mlp", "hidden"] = "linear"
    """``hidden`` localizes with the attention LSTM's state in place of the word."""
    words: Literal["all", "zero_loss", "zero_representation"] = "all"
    """What is done at words that are neither nouns nor verbs: nothing special, no reconstruction loss, or no region."""


class Localizer(nn.Module):
    """z = (W_l e)^T r, weights = softmax(z) (eq. 6), over regions, and over map cells where the captioner has them."""

    def __init__(self, kind: Literal["linear", "mlp", "hidden"], inner: int, width: int, *, cells: bool) -> None:
        super().__init__()
        self.kind = kind
        self.region = self._head(inner, width)
        self.cell = self._head(inner, width) if cells else None

    def _head(self, inner: int, width: int) -> nn.Module:
        if self.kind == "mlp":
            return nn.Sequential(nn.Linear(inner, width), nn.ReLU(), nn.Linear(width, width))
        return nn.Linear(inner, width, bias=False)

    def forward(self, vectors: Tensor, encoded: Encoded) -> Attend:
        """Weights for G captions per image, (C, T, E) with C = B * G in order of the images."""
        cells = None
        if self.cell is not None and encoded.cells is not None and encoded.cell_mask is not None:
            cells = self._weigh(self.cell(vectors), encoded.cells, encoded.cell_mask)
        return Attend(self._weigh(self.region(vectors), encoded.regions, encoded.mask), cells)

    @staticmethod
    def _weigh(asked: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        captions, steps, _ = asked.shape
        flat = asked.reshape(len(values), -1, asked.shape[-1])  # (B, G*T, D)
        return masked_softmax(flat @ values.transpose(1, 2), mask.unsqueeze(1)).view(captions, steps, -1)


class Cyclical(Objective):
    """The reconstruction loss, second term of eq. 8; the first is ``cross_entropy`` with its own weight.

    All passes are teacher forced. The localizer reads the most probable words of the first pass: no gradient goes back
    into that pass (section 3.2), but the embedding and the regions learn. Attention LSTM, language LSTM, embedding and
    output layer are shared. The localizer belongs to this objective, so the captioner that answers never has it.

    Ma et al., *Learning to Generate Grounded Visual Captions without Localization Supervision*, ECCV 2020, section 3.2,
    equations 6 to 8. Use together with ``cross_entropy``.

    >>> objective = Cyclical(captioner)
    >>> losses = objective(Context(captioner, batch))
    >>> losses["reconstruction"].backward()
    """

    @classmethod
    def needed(cls, options: Mapping[str, Any]) -> frozenset[Need]:
        """Tags, where words are told apart by them."""
        return frozenset({"tags"}) if options.get("words", CyclicalOptions().words) != "all" else frozenset()

    def __init__(self, captioner: Captioner, options: CyclicalOptions | None = None) -> None:
        super().__init__()
        self.options = options or CyclicalOptions()
        width = captioner.config.width
        inner = width if self.options.localizer == "hidden" else captioner.decoder.embedding.embedding_dim
        cells = captioner.decoder.cell_attention is not None
        self.localizer = Localizer(self.options.localizer, inner, width, cells=cells)

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``reconstruction``; leaves the localizer's weights in ``context.shared['localized']``, (C, T, N).

        Where the batch has human boxes, the accuracies of section 4.4 are watched; nothing is learnt from them.
        """
        batch, first, encoded = context.batch, context.first(), context.encoded()
        attend = self.localize(context.captioner, encoded, batch, first.best_words, first.states.detach())
        context.shared["localized"] = attend.regions
        content = (batch.tags == WordKind.NOUN) | (batch.tags == WordKind.VERB)
        if self.options.words == "zero_representation":
            kept = content.unsqueeze(-1)
            cells = None if attend.cells is None else attend.cells * kept
            attend = Attend(attend.regions * kept, cells)
        again = context.captioner.decode(encoded, batch.words, batch.image_of, attend=attend)
        counted = again.mask & content if self.options.words == "zero_loss" else again.mask
        losses = {"reconstruction": masked_mean(again.cross_entropy(batch.words)[0], counted)}
        if batch.phrase_boxes is not None:
            losses |= {f"_{name}": value for name, value in self.accuracy(context).items()}
        return losses

    def localize(
        self, captioner: Captioner, encoded: Encoded, batch: Batch, words: Tensor, states: Tensor | None = None
    ) -> Attend:
        """Find the regions of given words, (C, T); ``states`` (C, T, H) for a localizer that reads them."""
        if self.options.localizer == "hidden":
            if states is None:
                raise ValueError("a localizer that reads the attention LSTM needs its states")
            vectors = states
        else:
            vectors = captioner.decoder.word_dropout(captioner.decoder.embedding(words))
        attend: Attend = self.localizer(vectors, encoded.for_captions(batch.image_of))
        return attend

    @torch.no_grad()
    def hits(self, context: Context, min_iou: float = 0.5) -> dict[str, Tensor]:
        """Which annotated words of the batch the localizer and the decoder find, (P,) each (section 4.4).

        Found: the most attended region overlaps a box of the word by more than ``min_iou``. The localizer reads the
        ground-truth words. For batches with human boxes, such as those of validation.
        """
        batch, first = context.batch, context.first()
        localized = self.localize(context.captioner, context.encoded(), batch, batch.words, first.states).regions
        targets = word_targets(batch, "cyclical accuracy")
        assert batch.phrase_boxes is not None  # or there were no targets
        annotated = batch.phrase_boxes.mask.any(1)  # phrases such as "the air" have no box
        right = targets.positive(min_iou)[annotated]
        measured = {"localizer_accuracy": localized, "decoder_accuracy": first.mean_attention}
        found: dict[str, Tensor] = {}
        for name, weights in measured.items():
            best = weights[targets.caption, targets.position][annotated].argmax(1, keepdim=True)
            found[name] = right.gather(1, best).squeeze(1)
        return found

    def accuracy(self, context: Context, min_iou: float = 0.5) -> dict[str, Tensor]:
        """The share of annotated words that :meth:`hits` finds."""
        return {name: found.float().mean() for name, found in self.hits(context, min_iou).items()}
