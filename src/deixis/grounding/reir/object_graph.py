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


def neighbours(relations: RelationBatch | None) -> Tensor:
    """Return the pairs of phrases that a relation joins, each once and in both directions, (2, E)."""
    if relations is None:
        return torch.zeros(2, 0, dtype=torch.long)
    one_way = torch.stack([relations.subject, relations.object])
    edges = torch.cat([one_way, one_way.flip(0)], 1)
    joined: Tensor = torch.unique(edges[:, edges[0] != edges[1]], dim=1)
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

    def forward(self, objects: Tensor, weights: Tensor, edges: Tensor) -> Tensor:
        """Return x' of each phrase's proposals, from x (P, K, D), coarse attention (P, K) and edges (2, E)."""
        seen = torch.einsum("pk,pkd->pd", weights, objects)  # equation 5
        told = self.passed(seen, edges)
        return objects + weights.unsqueeze(-1) * told.unsqueeze(1)  # equation 8

    def passed(self, seen: Tensor, edges: Tensor) -> Tensor:
        """Return z', each node with its neighbours' messages (equation 6), (P, D)."""
        messages: Tensor = self.message(seen)
        heard = self.edge_weights(messages, edges).unsqueeze(1) * messages[edges[1]]  # (E, D)
        return seen.index_add(0, edges[0], heard)

    def edge_weights(self, messages: Tensor, edges: Tensor) -> Tensor:
        """Return omega of each edge (equation 7), (E,); those of the edges from one node sum to 1."""
        node, other = edges
        grown = messages.new_ones(len(node))
        if self.edges == "attention":
            products = (messages[node] * messages[other]).sum(1) / self.scale
            lowest = products.new_full((len(messages),), -torch.inf)
            grown = torch.exp(products - lowest.scatter_reduce(0, node, products.detach(), "amax")[node])
        total = messages.new_zeros(len(messages)).index_add(0, node, grown)
        return grown / total[node]


def gate_scale(form: Literal["paper", "code"], width: int = 512) -> float:
    """Return what the products of equation 7 are divided by."""
    return math.sqrt(width) if form == "code" else 1.0
