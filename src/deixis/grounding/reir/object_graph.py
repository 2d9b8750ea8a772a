"""ReIR's visual object graph: phrases that a relation joins tell each other what they see.

Liu et al., CVPR 2021, section 3.2.3, equations 5 to 8. The released program's graph is another one: phrases are
compared in a space of their own and only those that agree there hear each other, what is heard goes through one layer
with a ReLU, and what a phrase sees itself is not added again.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from deixis.data.batch import RelationBatch
from deixis.grounding.reir.features import Form

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
        form: The paper's graph or the released program's.
        gate_width: Of the space in which the released program compares phrases; products are divided by its root.
    """

    def __init__(self, width: int, edges: Edges = "attention", form: Form = "paper", gate_width: int = 512) -> None:
        super().__init__()
        self.edges, self.form = edges, form
        self.gate: nn.Linear | None = None
        if form == "paper":
            self.message = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        else:
            self.message = nn.Sequential(nn.Linear(width, width), nn.ReLU())
            self.gate = nn.Linear(width, gate_width)

    def forward(self, objects: Tensor, weights: Tensor, edges: Tensor) -> Tensor:
        """Return x' of each phrase's proposals, from x (P, K, D), coarse attention (P, K) and edges (2, E)."""
        seen = torch.einsum("pk,pkd->pd", weights, objects)  # equation 5
        told = self.passed(seen, edges)
        return objects + weights.unsqueeze(-1) * told.unsqueeze(1)  # equation 8

    def passed(self, seen: Tensor, edges: Tensor) -> Tensor:
        """Return z', each node with its neighbours' messages (equation 6), (P, D).

        As released: the messages alone, made of the weighted mean of what the neighbours see; nothing for a node
        without any that agrees.
        """
        if self.gate is not None:
            weights = self.released_weights(self.gate(seen), edges)  # (E,)
            mean = torch.zeros_like(seen).index_add(0, edges[0], weights.unsqueeze(1) * seen[edges[1]])
            heard = torch.zeros(len(seen), 1, device=seen.device).index_add(0, edges[0], (weights > 0).float()[:, None])
            told: Tensor = self.message(mean) * (heard > 0)
            return told
        messages: Tensor = self.message(seen)
        heard = self.edge_weights(messages, edges).unsqueeze(1) * messages[edges[1]]  # (E, D)
        return seen.index_add(0, edges[0], heard)

    def edge_weights(self, messages: Tensor, edges: Tensor) -> Tensor:
        """Return omega of each edge (equation 7), (E,); those of the edges from one node sum to 1."""
        node, other = edges
        grown = messages.new_ones(len(node))
        if self.edges == "attention":
            products = (messages[node] * messages[other]).sum(1)
            lowest = products.new_full((len(messages),), -torch.inf)
            grown = torch.exp(products - lowest.scatter_reduce(0, node, products.detach(), "amax")[node])
        total = messages.new_zeros(len(messages)).index_add(0, node, grown)
        return grown / total[node]

    def released_weights(self, gates: Tensor, edges: Tensor) -> Tensor:
        """Return the released weight of each edge, (P, W) -> (E,): a softmax over the neighbours whose product is above
        0; the others have none."""
        node, other = edges
        products = (gates[node] * gates[other]).sum(1) / math.sqrt(gates.shape[1])
        if self.edges == "uniform":
            products = torch.ones_like(products)
        open_ = products > 0
        highest = products.new_zeros(len(gates)).scatter_reduce(0, node, products.detach(), "amax")  # not below 0
        grown = torch.exp(products - highest[node]) * open_
        total = products.new_zeros(len(gates)).index_add(0, node, grown)
        return grown / torch.where(total > 0, total, 1.0)[node]
