"""ReIR's visual object graph: phrases that a relation joins tell each other what they see.

Liu et al., CVPR 2021, section 3.2.3, equations 5 to 8.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from deixis.data.batch import RelationBatch

Edges = Literal["attention", "uniform"]


def neighbours(relations: RelationBatch | None, phrases: Tensor) -> Tensor:
    """Return which phrases are joined by a relation, in either direction, (P, P); ``phrases`` has P rows."""
    joined = torch.zeros(len(phrases), len(phrases), dtype=torch.bool, device=phrases.device)
    if relations is not None:
        joined[relations.subject, relations.object] = True
        joined[relations.object, relations.subject] = True
        joined.fill_diagonal_(False)
    return joined


class ObjectGraph(nn.Module):
    """One step of message passing between what joined phrases see.

    Args:
        width: Width of the vectors.
        edges: Learnt weights (equation 7) or the same for all neighbours (section 4.4).
        scale: What the products of equation 7 are divided by: 1 in the paper, sqrt(512) in the released program.
    """

    def __init__(self, width: int, edges: Edges = "attention", scale: float = 1.0) -> None:
        super().__init__()
        self.edges, self.scale = edges, scale
        self.message = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, objects: Tensor, weights: Tensor, joined: Tensor) -> Tensor:
        """Return x' of each phrase's proposals, from x (P, K, D), coarse attention (P, K) and joined (P, P)."""
        seen = torch.einsum("pk,pkd->pd", weights, objects)  # equation 5
        told = self.passed(seen, joined)
        return objects + weights.unsqueeze(-1) * told.unsqueeze(1)  # equation 8

    def passed(self, seen: Tensor, joined: Tensor) -> Tensor:
        """Return z', each node with its neighbours' messages (equation 6), (P, D)."""
        messages: Tensor = self.message(seen)
        return seen + self.edge_weights(messages, joined) @ messages

    def edge_weights(self, messages: Tensor, joined: Tensor) -> Tensor:
        """Return omega (equation 7), (P, P); each row sums to 1, or to 0 for a node without neighbours."""
        if self.edges == "uniform":
            return joined.float() / joined.sum(1, keepdim=True).clamp(min=1)
        products = messages @ messages.T / self.scale
        # the smallest number and not -inf: a node without neighbours must not give NaN
        weights = torch.softmax(products.masked_fill(~joined, torch.finfo(products.dtype).min), 1)
        return weights * joined


def gate_scale(form: Literal["paper", "code"], width: int = 512) -> float:
    """Return what the products of equation 7 are divided by."""
    return math.sqrt(width) if form == "code" else 1.0
