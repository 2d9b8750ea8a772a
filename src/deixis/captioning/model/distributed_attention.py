"""Distributed attention (paper 3, section 3.3): K branches that look at different regions for one word."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.captioning.model.additive import additive_scores, masked_softmax
from deixis.captioning.model.attention import Attention, Looked


class DistributedAttention(Attention):
    """K additive attentions with their own weights, applied one after another (eq. 7).

    With ``elimination``, a branch sees R_k: the regions without those that earlier branches chose (their argmax).
    ``active`` branches take part; the others wait (the paper trains one branch for 20 epochs, then all).
    A branch that joins copies the first one: a random attention would hand noise to the shared language LSTM.
    Should no region be left for a branch, it sees all of them again; that adds nothing to the union of the boxes.
    """

    joined: Tensor

    def __init__(
        self,
        width: int,
        state_width: int,
        score_width: int,
        branches: int,
        *,
        project_regions: bool = True,
        elimination: bool = True,
        join: Literal["copy", "random"] = "copy",
        exclusion: Literal["frame", "clip"] = "frame",
    ) -> None:
        super().__init__()
        self.total, self.active = branches, branches
        self.width, self.elimination, self.exclusion = score_width, elimination, exclusion
        self.copies = join == "copy" and elimination
        self.query = nn.Linear(state_width, branches * score_width, bias=False)
        self.key = nn.Linear(width, branches * score_width) if project_regions else nn.Identity()
        self.score = nn.Parameter(torch.empty(branches, score_width).uniform_(-1, 1) * score_width**-0.5)
        # part of the checkpoint, so that a resumed run does not copy over branches that have learnt
        self.register_buffer("joined", torch.tensor(1))

    @property
    def branches(self) -> int:
        """The branches that take part: those in use, and when answering only those that have been trained."""
        return self.active if self.training else min(self.active, int(self.joined))

    @property
    def query_weight(self) -> Tensor:
        """The queries of the branches that take part."""
        return self.query.weight[: self.branches * self.width]

    @property
    def key_width(self) -> int:
        """The width of the first branch's score."""
        return self.width

    def join(self) -> None:
        """Give branches that became active since the last call their first weights."""
        joined = int(self.joined)
        if self.active <= joined:
            return
        if self.copies:
            width = self.width
            with torch.no_grad():
                for branch in range(joined, self.active):
                    rows = slice(branch * width, (branch + 1) * width)
                    self.query.weight[rows] = self.query.weight[:width]
                    if isinstance(self.key, nn.Linear):
                        self.key.weight[rows] = self.key.weight[:width]
                        self.key.bias[rows] = self.key.bias[:width]
                    self.score[branch] = self.score[0]
        self.joined.fill_(self.active)

    def prepare(self, regions: Tensor, mask: Tensor, frame: Tensor) -> Looked:
        """Project the regions for every branch, once."""
        if self.training:
            self.join()
        if isinstance(self.key, nn.Linear):
            used = self.branches * self.width
            keys = F.linear(regions, self.key.weight[:used], self.key.bias[:used])
        else:
            keys = regions
        return Looked(regions, mask, frame, keys, int(frame.max()) + 1)

    def forward(self, query: Tensor, looked: Looked) -> Tensor:
        """Return the weights of each branch, (B, G, K*A) -> (K, B, G, N)."""
        left = looked.mask.unsqueeze(1).expand(-1, query.shape[1], -1)  # (B, G, N)
        weights: list[Tensor] = []
        for branch in range(self.branches):
            columns = slice(branch * self.width, (branch + 1) * self.width)
            keys = looked.keys[..., columns] if isinstance(self.key, nn.Linear) else looked.keys
            scores = additive_scores(keys, query[..., columns], self.score[branch])
            weights.append(masked_softmax(scores, left))
            if self.elimination and branch + 1 < self.branches:
                left = self._without_chosen(weights[-1].detach(), left, looked.mask, looked.frame, looked.frames)
        return torch.stack(weights)

    def seen_by_branch(self, weights: Tensor, mask: Tensor, frame: Tensor) -> Tensor:
        """Return R_k, the regions that each branch had to choose from: (K, B, G, N), (B, N), (B, N) -> (K, B, G, N)."""
        left = mask.unsqueeze(1).expand(weights.shape[1:])
        seen = [left]
        for own in weights[:-1].detach():
            if self.elimination:
                left = self._without_chosen(own, left, mask, frame, int(frame.max()) + 1)
            seen.append(left)
        return torch.stack(seen)

    def _without_chosen(self, weights: Tensor, left: Tensor, mask: Tensor, frame: Tensor, frames: int) -> Tensor:
        """Return what a branch leaves to the next, (B, G, N); all regions again where it would be none."""
        left = left & ~self._chosen(weights, left, frame, frames)
        return torch.where(left.any(-1, keepdim=True), left, mask.unsqueeze(1))

    def _chosen(self, weights: Tensor, left: Tensor, frame: Tensor, frames: int) -> Tensor:
        """The regions a branch takes away from the next ones, (B, G, N): its best one, or its best one per frame."""
        if self.exclusion == "clip" or frames == 1:
            return torch.zeros_like(left).scatter_(-1, weights.argmax(-1, keepdim=True), True)
        chosen = torch.zeros_like(left)
        for at in range(frames):
            here = left & (frame == at).unsqueeze(1)
            best = weights.masked_fill(~here, -1).argmax(-1, keepdim=True)
            chosen |= torch.zeros_like(left).scatter_(-1, best, True) & here
        return chosen
