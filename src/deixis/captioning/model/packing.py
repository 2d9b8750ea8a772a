"""Which captions still speak at which step, so that a pass over captions of many lengths does no work on padding.

Captions are put in order of length; at step t the first ``counts[t]`` of them take part. What the steps give is kept
packed: first step by step, in the end row by row of the captions' mask.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Places:
    """The M real words of C captions, step after step."""

    mask: Tensor  # (C, T)
    order: Tensor  # (C,) captions, longest first
    counts: tuple[int, ...]
    """How many captions take part in each step; no step without any."""
    caption: Tensor  # (M,)
    time: Tensor  # (M,)
    back: Tensor  # (M,) from steps to rows
    in_order: bool
    """Whether the captions were in order of length already."""

    @classmethod
    def of(cls, words: Tensor) -> Places:
        """Find the places of words (C, T) that are padded with 0 at the end."""
        mask = words != 0
        lengths = mask.sum(1)
        order = lengths.argsort(stable=True, dim=0, descending=True)
        at = torch.arange(words.shape[1], device=words.device)
        counts = (lengths > at.unsqueeze(1)).sum(1)  # (T,)
        real = counts[counts > 0]
        time = at[: len(real)].repeat_interleave(real)
        started = real.cumsum(0) - real  # where each step begins
        caption = order[torch.arange(len(time), device=words.device) - started[time]]
        first = lengths.cumsum(0) - lengths  # where each caption begins
        back = (first[caption] + time).argsort()
        in_order = bool((order == torch.arange(len(order), device=words.device)).all())
        return cls(mask, order, tuple(real.tolist()), caption, time, back, in_order)

    def split(self, packed: Tensor) -> tuple[Tensor, ...]:
        """Cut (M, ...) into the steps."""
        return torch.split_with_sizes(packed, list(self.counts))

    def joined(self, steps: list[Tensor], dim: int) -> Tensor:
        """Join the steps' rows along ``dim``, in the order of the captions' words."""
        return torch.cat(steps, dim).index_select(dim, self.back)
