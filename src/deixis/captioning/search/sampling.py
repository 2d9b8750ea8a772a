"""Drawing words: temperature, the k most probable, the smallest set with probability p."""

from __future__ import annotations

import torch
from torch import Tensor


def draw(probabilities: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw one index per row by inverting the cumulated distribution, (R, V) -> (R,).

    One random number per row, where ``torch.multinomial`` draws one per word.
    """
    total = probabilities.cumsum(-1)
    uniform = torch.rand(len(probabilities), 1, generator=generator).to(probabilities) * total[:, -1:]
    drawn = torch.searchsorted(total, uniform, right=True).squeeze(-1)
    # rounding may leave the point past the last word that has any probability
    last = probabilities.shape[-1] - 1 - (probabilities.flip(-1) > 0).to(torch.uint8).argmax(-1)
    return torch.minimum(drawn, last)


def narrow(log_probs: Tensor, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    """Return the distribution to draw from: sharpened, cut to the best k, then to the best with mass p, (R, V)."""
    scaled = log_probs / temperature
    if 0 < top_k < scaled.shape[-1]:
        lowest = scaled.topk(top_k, dim=-1).values[:, -1:]
        scaled = scaled.masked_fill(scaled < lowest, -torch.inf)
    probabilities = scaled.softmax(-1)
    if top_p < 1.0:
        ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
        # a word stays if those before it do not reach p yet, so at least one always stays
        dropped = ordered.cumsum(-1) - ordered >= top_p
        probabilities = torch.zeros_like(probabilities).scatter(-1, order, ordered.masked_fill(dropped, 0.0))
        probabilities = probabilities / probabilities.sum(-1, keepdim=True)
    return probabilities
