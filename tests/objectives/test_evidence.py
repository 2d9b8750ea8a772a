"""The contrast of words and images against a loop that counts pairs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from deixis.errors import DeixisError
from deixis.objectives.base import Context
from deixis.objectives.evidence import Evidence, EvidenceOptions, contrast, words_of_images
from tests.grounding.conftest import batch_of
from tests.grounding.lite.test_model import CAT, DOG, MAN, RED, grounder


def test_contrast_counts_each_pair_against_pairs_that_do_not_belong() -> None:
    torch.manual_seed(0)
    scores, weights = torch.randn(4, 3), torch.tensor([[1.0, 0, 0.5], [0, 1, 0], [1, 0, 0], [0, 0.25, 0]])
    total = 0.0
    for word in range(4):
        for image in range(3):
            if weights[word, image]:
                others = sum(math.exp(scores[word, b]) for b in range(3) if not weights[word, b])
                own = math.exp(scores[word, image])
                total -= float(weights[word, image]) * math.log(own / (own + others))
    assert float(contrast(scores, weights, 1)) == pytest.approx(total / float(weights.sum()), rel=1e-5)
    assert float(contrast(scores.T, weights.T, 0)) == pytest.approx(float(contrast(scores, weights, 1)), rel=1e-6)


def test_words_are_counted_by_caption_and_image() -> None:
    batch = batch_of()  # image 0: "a man holds a red dog", "a cat"; image 1: "a dog holds a cat"
    words, said = words_of_images(batch, torch.arange(12))
    table = dict(zip(words.tolist(), said.tolist(), strict=True))
    assert table == {DOG: [1.0, 1.0], RED: [1.0, 0.0], CAT: [1.0, 1.0], MAN: [1.0, 0.0]}


def test_it_learns_which_image_a_word_is_in() -> None:
    model = grounder().train()
    batch = batch_of()
    batch = replace(batch, regions=replace(batch.regions, regionness=torch.rand(2, 4)))
    objective = Evidence(EvidenceOptions(agreement=1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    first = None
    for _ in range(30):
        loss = objective(Context(model, batch))["evidence"]
        first = loss.item() if first is None else first
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert first is not None
    assert loss.item() < first / 2
    model.eval()
    with torch.no_grad():
        presence = model.presence(torch.tensor([RED, MAN]), batch.regions)
    assert (presence[:, 0] > presence[:, 1]).all()


def test_it_says_whom_it_trains() -> None:
    with pytest.raises(DeixisError, match="trains a LiteGrounder"):
        Evidence()(Context(torch.nn.Linear(1, 1), batch_of()))
