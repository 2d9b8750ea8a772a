"""The additive attention score w . tanh(key + query), for all regions of an image and all captions about it at once.

Two things make it quick on a CPU. Adding a constant to every score leaves a softmax as it is, so tanh(x) may be
replaced by 2 sigmoid(2x) (= tanh(x) + 1), which is computed several times faster. And the gradient is written out: with
s = sigmoid(2x), the sums over regions and over captions become matrix products over s (1 - s), with no temporary of the
size of all pairs for each of them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

LARGEST_KEPT = 8_000_000
"""Pairs times width up to which the activations of a step are kept for its gradient; larger ones (clips) are computed
again, which costs little and saves gigabytes over the steps of a caption."""


def _sigmoids(keys: Tensor, query: Tensor) -> Tensor:
    return torch.add(2 * keys.unsqueeze(1), query.unsqueeze(2), alpha=2).sigmoid_()  # (B, G, N, A)


class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keys: Tensor, query: Tensor, weight: Tensor) -> Tensor:
        s = _sigmoids(keys, query)
        ctx.save_for_backward(keys, query, weight, s if s.numel() <= LARGEST_KEPT else None)
        return 2 * (s @ weight)  # (B, G, N)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys, query, weight, s = ctx.saved_tensors
        if s is None:
            s = _sigmoids(keys, query)
        (grad,) = grads  # (B, G, N)
        grad_weight = 2 * (grad.reshape(-1) @ s.flatten(0, 2))  # (A,)
        slope = torch.addcmul(s, s, s, value=-1)  # s (1 - s), (B, G, N, A)
        grad_query = (grad.unsqueeze(2) @ slope).squeeze(2) * (4 * weight)  # (B, G, A)
        by_region = grad.transpose(1, 2).unsqueeze(2) @ slope.transpose(1, 2)  # (B, N, 1, A)
        return by_region.squeeze(2) * (4 * weight), grad_query, grad_weight


def additive_scores(keys: Tensor, query: Tensor, weight: Tensor) -> Tensor:
    """Return w . tanh(key + query) + sum(w) for every pair: (B, N, A), (B, G, A), (A,) -> (B, G, N).

    The added constant sum(w) does not depend on the region, so a softmax over regions does not see it.
    """
    kind = query.dtype  # one precision throughout, also under autocast
    scores: Tensor = _AdditiveScores.apply(keys.to(kind), query, weight.to(kind))  # type: ignore[no-untyped-call]
    return scores


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis where ``mask`` is True; rows without any True are all zero."""
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)
    return weights * mask
