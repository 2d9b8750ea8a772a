"""Several grounders as one: their beliefs about the same regions are averaged."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from deixis.data.batch import Batch
from deixis.errors import DeixisError
from deixis.grounding.base import AnswerOptions, WordGrounder


class Ensemble(WordGrounder):
    """A weighted mean of the members' logarithms of probabilities: a region must please all of them.

    Members must know the same words, and be trained on regions of one extractor. Where members move boxes, a region's
    box is the weighted mean of the members' boxes for it.

    >>> both = Ensemble([infoground, reir], weights=[1.0, 2.0])  # doctest: +SKIP
    """

    def __init__(
        self,
        members: Sequence[WordGrounder],
        weights: Sequence[float] | None = None,
        answers: AnswerOptions | None = None,
    ) -> None:
        if not members:
            raise DeixisError("an ensemble needs at least one grounder")
        given = list(weights) if weights is not None else [1.0] * len(members)
        if len(given) != len(members) or min(given) < 0 or sum(given) <= 0:
            raise DeixisError(f"an ensemble of {len(members)} needs as many weights of at least 0, got {given}")
        first = members[0].vocabulary
        for member in members[1:]:
            if member.vocabulary.words != first.words:
                raise DeixisError("the grounders of an ensemble know different words: train them on one vocabulary")
        super().__init__(first, answers or members[0].answers)
        self.members = nn.ModuleList(members)
        self.weights = [weight / sum(given) for weight in given]
        self.reads_relations = any(member.reads_relations for member in members)

    def ranked_boxes(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the mean log-probability of every region for every phrase, (P, N), and its mean box, (P, N, 4)."""
        parts = [member.ranked_boxes(batch) for member in self._grounders()]
        logits = self._mean([torch.log_softmax(scores, -1) for scores, _ in parts])
        return logits, self._mean([boxes.float() for _, boxes in parts])

    def phrase_logits(self, batch: Batch) -> Tensor:
        """Return the mean log-probability of every region for every phrase, (P, N)."""
        return self.ranked_boxes(batch)[0]

    def word_scores(self, batch: Batch) -> Tensor:
        """Return the mean log-probability of every region for every word, (C, T, N)."""
        return self._mean([torch.log_softmax(member.word_scores(batch), -1) for member in self._grounders()])

    def match(self, batch: Batch) -> Tensor:
        """Return the mean of the members' scores, (C,)."""
        return self._mean([member.match(batch) for member in self._grounders()])

    def _grounders(self) -> list[WordGrounder]:
        return [member for member in self.members if isinstance(member, WordGrounder)]

    def _mean(self, parts: Sequence[Tensor]) -> Tensor:
        # padding is -inf for all, and 0 * -inf would be NaN: a member without weight is left out
        weighted = [weight * part for weight, part in zip(self.weights, parts, strict=True) if weight]
        return torch.stack(weighted).sum(0)
