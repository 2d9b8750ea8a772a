"""What a teacher-forced pass gives: states and attention of every step, and words computed from them when asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.captioning.model.decoder import Decoder


@dataclass(eq=False, slots=True)
class Decoded:
    """A pass of C captions with K branches. The output layer runs once, over real words only, when first needed."""

    decoder: Decoder
    mask: Tensor  # (C, T) words and end tokens
    packed_hidden: Tensor  # (K, M, H) language states after dropout, of the M real words in row-major order of ``mask``
    attention: Tensor  # (K, C, T, N), rows of heads for multi-head attention; without rows when given from outside
    packed_states: Tensor  # (M, H) attention-LSTM states
    _packed: Tensor | None = field(default=None, repr=False)

    @property
    def branches(self) -> int:
        """K."""
        return len(self.packed_hidden)

    @property
    def hidden(self) -> Tensor:
        """Language states at every position, 0 where padded, (K, C, T, H)."""
        return self._spread(self.packed_hidden)

    @property
    def states(self) -> Tensor:
        """Attention-LSTM states at every position, 0 where padded, (C, T, H)."""
        return self._spread(self.packed_states.unsqueeze(0))[0]

    @property
    def packed_logits(self) -> Tensor:
        """Logits of the real words in row-major order of ``mask``, (K, M, V)."""
        if self._packed is None:
            self._packed = self.decoder.words(self.packed_hidden)
        return self._packed

    @property
    def log_probs(self) -> Tensor:
        """Log-probabilities at every position, (K, C, T, V); padding holds a uniform distribution."""
        packed = F.log_softmax(self.packed_logits.float(), -1)
        return self._spread(packed, -math.log(packed.shape[-1]))

    @property
    def mean_attention(self) -> Tensor:
        """Mean over branches or heads, (C, T, N)."""
        return self.attention.mean(0)

    def cross_entropy(self, words: Tensor, *, smoothing: float = 0.0) -> Tensor:
        """-log p of given words for each branch, (C, T) -> (K, C, T); 0 where padded."""
        logits = self.packed_logits.float()  # (K, M, V)
        target = words[self.mask].expand(len(logits), -1)
        losses = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none", label_smoothing=smoothing)
        return self._spread(losses.view(len(logits), -1))

    def word_log_probs(self, words: Tensor) -> Tensor:
        """Log of the mean over branches of p(word), (C, T) -> (C, T); 0 where padded."""
        return mean_log_probs(-self.cross_entropy(words)) * self.mask

    @property
    def best_words(self) -> Tensor:
        """The most probable word of every step without gradient, by the mean over branches, (C, T); 0 where padded."""
        with torch.no_grad():  # and not kept: what is computed here could teach nobody later
            logits = self._packed if self._packed is not None else self.decoder.words(self.packed_hidden)
            scores = logits[0] if len(logits) == 1 else logits.float().softmax(-1).mean(0)
            best = torch.zeros_like(self.mask, dtype=torch.long)
            best[self.mask] = scores.argmax(-1)
            return best

    def _spread(self, packed: Tensor, fill: float = 0.0) -> Tensor:
        """Put what is packed at its places, (K, M, ...) -> (K, C, T, ...)."""
        full = packed.new_full((len(packed), *self.mask.shape, *packed.shape[2:]), fill)
        full[:, self.mask] = packed
        return full


def mean_log_probs(log_probs: Tensor) -> Tensor:
    """Log of the mean of K distributions, (K, ...) -> (...)."""
    return log_probs[0] if len(log_probs) == 1 else log_probs.logsumexp(0) - math.log(len(log_probs))
