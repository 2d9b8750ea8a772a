"""Multi-head attention over regions: what paper 3 compares distributed attention with (section 4.4)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from deixis.captioning.model.additive import masked_softmax
from deixis.captioning.model.attention import Attention, Looked


class MultiHeadAttention(Attention):
    """Scaled dot-product attention with several heads, each mixing its own projection of the regions.

    It gives one attended vector and one row of weights per head. The width of a head is rounded up, so that any number
    of heads (the paper tries 2 to 6) goes with any width.
    """

    mixes_regions = False

    def __init__(self, width: int, state_width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.head_width = heads, -(-width // heads)
        inner = heads * self.head_width
        self.query = nn.Linear(state_width, inner, bias=False)
        self.key = nn.Linear(width, inner)
        self.value = nn.Linear(width, inner)
        self.join = nn.Linear(inner, width)

    @property
    def rows(self) -> int:
        """One row of weights per head."""
        return self.heads

    @property
    def key_width(self) -> int:
        """The width of all heads together."""
        return self.heads * self.head_width

    def first_keys(self, looked: Looked) -> Tensor:
        """Return the keys of all heads side by side: no head comes first."""
        return looked.keys.transpose(1, 2).flatten(2)  # (B, N, heads * head width)

    def prepare(self, regions: Tensor, mask: Tensor, frame: Tensor) -> Looked:
        """Project keys and values once."""
        return Looked(regions, mask, frame, self._split(self.key(regions)), values=self._split(self.value(regions)))

    def forward(self, query: Tensor, looked: Looked) -> Tensor:
        """Return weights, (B, G, heads*width) -> (heads, B, G, N)."""
        scores = self._split(query) @ looked.keys.transpose(-1, -2) * self.head_width**-0.5  # (B, heads, G, N)
        return masked_softmax(scores, looked.mask[:, None, None]).transpose(0, 1)

    def attend(self, weights: Tensor, looked: Looked) -> Tensor:
        """Mix each head's values and join them, (heads, B, G, N) -> (1, B, G, D)."""
        values = looked.values
        assert values is not None
        if len(weights) == 1:  # weights from outside, such as the localizer's: the same for every head
            weights = weights.expand(self.heads, -1, -1, -1)
        mixed = weights.transpose(0, 1) @ values  # (B, heads, G, head width)
        joined: Tensor = self.join(mixed.transpose(1, 2).flatten(2))
        return joined.unsqueeze(0)

    def _split(self, flat: Tensor) -> Tensor:
        return torch.unflatten(flat, -1, (self.heads, self.head_width)).transpose(1, 2)  # (B, heads, -, head width)
