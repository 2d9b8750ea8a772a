"""Teaching: a divergence that is 0 when the pupil agrees, falls with training, and leaves the teacher alone."""

from __future__ import annotations

import torch

from deixis.objectives.base import Context
from deixis.objectives.teaching import Teaching, TeachingOptions, some_phrases
from tests.grounding.conftest import batch_of
from tests.grounding.lite.test_model import grounder


def test_the_loss_is_the_divergence_from_the_teacher() -> None:
    model, batch = grounder(), batch_of()
    assert batch.phrases is not None
    found = Teaching(TeachingOptions(temperature=0.7))(Context(model, batch))["teaching"]
    wanted = torch.softmax(model.teacher(batch, batch.phrases) / 0.7, -1)
    given = torch.log_softmax(model.pupil(batch, batch.phrases), -1)
    expected = torch.nn.functional.kl_div(given, wanted, reduction="none")
    assert torch.allclose(found, torch.where(wanted > 0, expected, 0.0).sum(-1).mean(), atol=1e-5)


def test_the_pupil_comes_to_agree_and_the_evidence_stays() -> None:
    model, batch = grounder().train(), batch_of()
    before = model.evidence_words.weight.detach().clone()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(200):
        losses = Teaching()(Context(model, batch))
        optimizer.zero_grad()
        losses["teaching"].backward()
        optimizer.step()
    assert model.training
    assert losses["teaching"].item() < 0.05
    assert torch.equal(model.evidence_words.weight, before)


def test_a_share_of_the_phrases_is_drawn() -> None:
    phrases = batch_of().phrases
    assert phrases is not None
    drawn = some_phrases(phrases, 3, torch.Generator().manual_seed(0))
    assert len(drawn.head) == 3
    every = set(zip(phrases.caption.tolist(), phrases.head.tolist(), strict=True))
    assert set(zip(drawn.caption.tolist(), drawn.head.tolist(), strict=True)) <= every
