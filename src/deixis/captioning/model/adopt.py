"""What an attention takes over from another kind of attention when a run starts from a trained captioner.

Paper 3 trains one branch first and adds the others later, without saying how they begin. Ours begin as copies of the
first, a little apart: a copy looks where the trained branch looks, so the language LSTM, which all branches share, is
not handed noise; elimination then sends each to other regions, and without elimination the small difference is all that
keeps copies from staying equal for ever.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from deixis.captioning.model.attention import Attention, SoftAttention
from deixis.captioning.model.distributed_attention import DistributedAttention

APART = 0.05
"""Standard deviation of what is added to a copied branch, in standard deviations of the copied weights."""


def adopt(attention: Attention, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return ``weights`` of another attention in the form of ``attention``.

    Soft attention counts as one branch. Distributed attention takes the branches there are, up to its own number, and
    copies the first for the others; soft attention takes the first branch. Multi-head attention has nothing in common
    with the two and keeps the weights it was made with, as they keep theirs when they would start from it.
    """
    own = attention.state_dict()
    if _heads(own) or _heads(weights):
        return dict(weights) if _heads(own) == _heads(weights) else dict(own)
    given = _branches(weights)
    if isinstance(attention, SoftAttention):
        return given[0]
    if not isinstance(attention, DistributedAttention):
        return dict(weights)
    trained = int(weights.get("joined", torch.tensor(1)))
    kept = given[: min(trained, attention.total)]
    noise = torch.Generator().manual_seed(0)  # every process must make the same branches
    while len(kept) < attention.total:
        kept.append({name: _nearby(value, noise) for name, value in given[0].items()})
    joined = {name: torch.cat([branch[name] for branch in kept]) for name in given[0] if name != "score"}
    return {
        **joined,
        "score": torch.stack([branch["score"] for branch in kept]),
        "joined": torch.tensor(attention.total),
    }


def _heads(weights: Mapping[str, Tensor]) -> bool:
    return "value.weight" in weights


def _branches(weights: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """Cut the weights of soft or distributed attention into those of single branches, in the form of soft attention."""
    score = weights["score"]
    if score.dim() == 1:
        return [dict(weights)]
    parts = {name: value.chunk(len(score)) for name, value in weights.items() if name not in ("score", "joined")}
    return [{"score": score[at], **{name: part[at] for name, part in parts.items()}} for at in range(len(score))]


def _nearby(value: Tensor, noise: torch.Generator) -> Tensor:
    spread = value.std() if value.numel() > 1 else value.new_zeros(())
    return value + APART * spread * torch.randn(value.shape, generator=noise).to(value)
