"""How one step of the decoder looks at the regions: the interface, and soft attention.

An attention turns queries into weights over regions and, for those that do more than mix the encoded regions, into
attended vectors. Soft attention gives one row of weights and one vector; distributed attention K of both; multi-head
attention K rows of weights and one vector.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from deixis.captioning.model.additive import additive_scores, masked_softmax
from deixis.errors import BadRecipeError


@dataclass(frozen=True, slots=True)
class Looked:
    """What an attention prepared of B images, once for all steps and captions."""

    regions: Tensor  # (B, N, D) encoded
    mask: Tensor  # (B, N)
    frame: Tensor  # (B, N)
    keys: Tensor  # (B, N, anything)
    frames: int = 1
    values: Tensor | None = None  # (B, heads, N, head width) where the attention projects what it mixes


class Attention(nn.Module):
    """Base of all attentions. ``query`` maps the state of the attention LSTM; the decoder fuses it with other maps."""

    query: nn.Linear
    mixes_regions = True
    """Whether attended vectors are plain weighted means of the encoded regions, so that linear maps may go first."""

    @property
    def branches(self) -> int:
        """How many attended vectors, and so words, one step has."""
        return 1

    @property
    def rows(self) -> int:
        """How many rows of weights one step has."""
        return self.branches

    @property
    def query_weight(self) -> Tensor:
        """The rows of ``query`` in use, (Q, H)."""
        return self.query.weight

    @property
    def key_width(self) -> int:
        """The width of what :meth:`first_keys` gives."""
        raise BadRecipeError(f"{type(self).__name__} shares no keys (key_width): set keys to regions in 'cyclical'")

    def first_keys(self, looked: Looked) -> Tensor:
        """Return the region vectors that the (first) row of weights scores, (B, N, A)."""
        return looked.keys[..., : self.key_width]

    def prepare(self, regions: Tensor, mask: Tensor, frame: Tensor) -> Looked:
        """Do what depends on the image alone: (B, N, D), (B, N), (B, N)."""
        raise TypeError(f"{type(self).__name__} does not say how to prepare regions")

    def forward(self, query: Tensor, looked: Looked) -> Tensor:
        """Return weights for G captions per image, (B, G, Q) -> (K, B, G, N)."""
        raise TypeError(f"{type(self).__name__} does not say how to weigh regions")

    def attend(self, weights: Tensor, looked: Looked) -> Tensor:
        """Return the attended vectors, (K, B, G, N) -> (K, B, G, D)."""
        return weights @ looked.regions


class SoftAttention(Attention):
    """Additive attention: z = w . tanh(W_h h + W_r r), weights = softmax(z).

    Cyclical eq. 2 (without W_r: ``project_regions=False``), POS-SCAN eqs. 11-12, Distributed eq. 2.
    """

    def __init__(self, width: int, state_width: int, score_width: int, *, project_regions: bool = True) -> None:
        super().__init__()
        self.query = nn.Linear(state_width, score_width, bias=False)
        self.key = nn.Linear(width, score_width) if project_regions else nn.Identity()
        self.score = nn.Parameter(torch.empty(score_width).uniform_(-1, 1) * score_width**-0.5)

    @property
    def key_width(self) -> int:
        """The width of the additive score."""
        return len(self.score)

    def prepare(self, regions: Tensor, mask: Tensor, frame: Tensor) -> Looked:
        """Project the regions once."""
        return Looked(regions, mask, frame, self.key(regions))

    def forward(self, query: Tensor, looked: Looked) -> Tensor:
        """Return weights, (B, G, A) -> (1, B, G, N)."""
        return masked_softmax(additive_scores(looked.keys, query, self.score), looked.mask.unsqueeze(1)).unsqueeze(0)
