"""Stacked cross attention between words and regions, for every caption with every image or each with its own.

SCAN (Lee et al., ECCV 2018) as POS-SCAN uses it (Zhou et al., CVPR 2020, section 3.1, equations 4 to 8). One side asks
(words, in the text-to-image form), the other is looked at (regions). Everything follows from cosine similarities
and from the Gram matrix of the looked-at side, so the attended vectors themselves are never formed: with attention a
over unit vectors v, the attended vector is sum(a v), its product with the asker is a·s, its squared length a·G·a.
With 36 regions of width 1,024 that is some thirty times less work.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Normalisation = Literal["clipped-l2", "leaky-l2", "l2", "clipped-l1", "softmax", "clipped", "none"]
Pooling = Literal["mean", "logsumexp", "max", "sum"]

LEAK = 0.1
"""Slope of the released code's LeakyReLU where the paper has [.]+ (FACTS: POS-SCAN)."""


def normalise(similarity: Tensor, asker_mask: Tensor, how: Normalisation) -> Tensor:
    """Make the similarities of one looked-at item comparable over the askers (POS-SCAN, below equation 4).

    ``similarity`` is (..., T, N) with askers T and looked-at items N; ``asker_mask`` (..., T) says which askers count
    in the sums. Askers outside the mask are still normalised, by the sums of the others.
    """
    counts = asker_mask.unsqueeze(-1)  # (..., T, 1)
    if how == "softmax":
        peak = similarity.masked_fill(~counts, -torch.inf).amax(-2, keepdim=True)
        weights = torch.exp(similarity - torch.where(torch.isfinite(peak), peak, 0.0))
        return weights / (weights * counts).sum(-2, keepdim=True).clamp(min=1e-8)
    if how in ("clipped-l2", "clipped-l1", "clipped"):
        similarity = similarity.clamp(min=0)
    elif how == "leaky-l2":
        similarity = F.leaky_relu(similarity, LEAK)
    if how in ("clipped-l2", "leaky-l2", "l2"):
        # epsilon under the root: the gradient of a square root at zero is infinite
        return similarity / ((similarity.square() * counts).sum(-2, keepdim=True) + 1e-12).sqrt().clamp(min=1e-6)
    if how == "clipped-l1":
        return similarity / (similarity * counts).sum(-2, keepdim=True).clamp(min=1e-6)
    return similarity


def attention(normalised: Tensor, item_mask: Tensor, temperature: float) -> Tensor:
    """Return each asker's distribution over the items, (..., T, N) (equation 5). Padded items get exactly 0."""
    logits = (temperature * normalised).masked_fill(~item_mask.unsqueeze(-2), -torch.inf)
    return torch.softmax(logits, -1)


def relevance(weights: Tensor, similarity: Tensor, gram: Tensor) -> Tensor:
    """Return the cosine of each asker with what it attends to, R of equation 6, (..., T).

    ``weights`` and ``similarity`` are (..., T, N), ``gram`` (..., N, N) holds the products of the unit items.
    """
    product = (weights * similarity).sum(-1)  # (..., T)
    length = ((weights @ gram) * weights).sum(-1).clamp(min=1e-12).sqrt()  # (..., T)
    return product / length


def pool(relevances: Tensor, mask: Tensor, how: Pooling, sharpness: float = 6.0) -> Tensor:
    """Return one score per pair from the relevances of its askers, (..., T) -> (...) (equations 6 and 8)."""
    if how == "mean":
        return (relevances * mask).sum(-1) / mask.sum(-1).clamp(min=1)
    if how == "sum":
        return (relevances * mask).sum(-1)
    if how == "max":
        return relevances.masked_fill(~mask, -torch.inf).amax(-1)
    return torch.logsumexp((sharpness * relevances).masked_fill(~mask, -torch.inf), -1) / sharpness
