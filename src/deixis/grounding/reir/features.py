"""ReIR's backbone: vectors of regions with their place, vectors of phrases in their sentence.

Liu et al., *Relation-aware Instance Refinement for Weakly Supervised Visual Grounding*, CVPR 2021, section 3.2.1.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.data.batch import Batch
from deixis.grounding.base import real_words

Form = Literal["paper", "code"]
"""Where the paper and the released program differ: what the text says, or what the program does."""


def recurrent(form: Form, inputs: int, width: int) -> nn.LSTM | nn.GRU:
    """Return the reader or writer of words: LSTM in the paper, GRU in the released program."""
    return (nn.LSTM if form == "paper" else nn.GRU)(inputs, width, batch_first=True)


class RegionFeatures(nn.Module):
    """Embeds a region's feature together with its place and size as x_o, (..., D). The released form normalises over
    the real regions of a batch; padding never enters the statistics."""

    def __init__(self, form: Form, features: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Linear(features + 5, width)
        self.norm = nn.BatchNorm1d(width) if form == "code" else None

    def forward(self, features: Tensor, boxes: Tensor, sizes: Tensor, mask: Tensor) -> Tensor:
        """Return x_o from features (..., S), boxes in pixels (..., 4), image sizes (..., 2); zeros outside the mask."""
        places = boxes / torch.cat([sizes, sizes], -1).clamp(min=1)
        area = (places[..., 2:] - places[..., :2]).prod(-1, keepdim=True)
        rows = normalised(
            F.relu(self.embed(torch.cat([features.float(), places, area], -1)[mask])), self.norm
        )  # (M, D)
        out = rows.new_zeros(*mask.shape, rows.shape[-1])
        out[mask] = rows
        return out


class PhraseFeatures(nn.Module):
    """Reads the sentence and averages its states over each phrase (equation 1); the released form normalises over the
    phrases of a batch."""

    def __init__(self, form: Form, words: int, word_width: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, word_width, padding_idx=0)
        self.read = recurrent(form, word_width, width)
        self.norm = nn.BatchNorm1d(width) if form == "code" else None
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)
        with torch.no_grad():
            self.embed.weight[0].zero_()

    def forward(self, batch: Batch) -> Tensor:
        """Return the state h of every word, (C, T, D); zeros after a caption's end."""
        lengths = real_words(batch).sum(1).clamp(min=1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embed(batch.words), lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(
            self.read(packed)[0], batch_first=True, total_length=batch.words.shape[1]
        )
        return states

    def pooled(self, states: Tensor, inside: Tensor, caption: Tensor) -> Tensor:
        """Return x_q, the mean of h over each phrase's words (equation 1), (C, T, D), (P, T), (P,) -> (P, D)."""
        weights = inside.float() / inside.sum(1, keepdim=True).clamp(min=1)
        return normalised(torch.einsum("pt,ptd->pd", weights, states[caption]), self.norm)


def normalised(rows: Tensor, norm: nn.BatchNorm1d | None) -> Tensor:
    """Return rows normalised over themselves, (M, D); fewer than two by what other batches taught."""
    if norm is None:
        return rows
    if norm.training and len(rows) > 1:  # one row has no variance of its own
        out: Tensor = norm(rows)
        return out
    return F.batch_norm(rows, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
