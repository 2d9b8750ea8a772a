"""Paraphrases: which phrases pair up, the divergence by its definition, and that it pulls answers together."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F

from deixis.data.batch import Batch, PhraseBatch
from deixis.objectives.base import Context
from deixis.objectives.paraphrase import (
    ParaphraseConsistency,
    ParaphraseOptions,
    paraphrases,
    symmetric_divergence,
)
from tests.grounding.conftest import CAT, DOG, RED, A, batch_of
from tests.grounding.lite.test_model import DOGS, VOCABULARY, grounder


def said_twice() -> Batch:
    """Image 0: "a red dog", "a cat" and "dogs"; image 1: "a dog". Only the first and the third are paraphrases."""
    batch = batch_of()
    words = torch.tensor([[A, RED, DOG, A, CAT, 2, 0], [DOGS, 2, 0, 0, 0, 0, 0], [A, DOG, 2, 0, 0, 0, 0]])
    columns = ([0, 0, 1, 2], [0, 3, 0, 0], [3, 5, 1, 2], [2, 4, 0, 1])
    return replace(batch, words=words, phrases=PhraseBatch(*(torch.tensor(column) for column in columns)))


def test_pairs_share_image_and_lemma_but_not_the_caption() -> None:
    objective = ParaphraseConsistency(ParaphraseOptions(), VOCABULARY)
    first, second = paraphrases(said_twice(), objective.lemma)
    assert (first.tolist(), second.tolist()) == ([0], [2])


def test_the_divergence_is_both_ways_and_ignores_padding() -> None:
    torch.manual_seed(0)
    a, b = torch.log_softmax(torch.randn(5, 4), -1), torch.log_softmax(torch.randn(5, 4), -1)
    both = F.kl_div(b, a, reduction="none", log_target=True) + F.kl_div(a, b, reduction="none", log_target=True)
    assert torch.allclose(symmetric_divergence(a, b), both.sum(-1) / 2, atol=1e-5)
    pad = torch.full((5, 2), -torch.inf)
    padded = torch.cat([a, pad], 1).requires_grad_()
    loss = symmetric_divergence(padded, torch.cat([b, pad], 1))
    assert torch.allclose(loss, both.sum(-1) / 2, atol=1e-5)
    (gradient,) = torch.autograd.grad(loss.sum(), padded)
    assert torch.isfinite(gradient).all()


def test_paraphrases_come_to_agree() -> None:
    model, batch = grounder().train(), said_twice()
    objective = ParaphraseConsistency(ParaphraseOptions(), VOCABULARY)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses: list[float] = []
    for _ in range(40):
        loss = objective(Context(model, batch))["paraphrase_consistency"]
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[-1] < losses[0] / 10
