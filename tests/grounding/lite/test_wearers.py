"""Whole things for their parts, against hand-worked shares; and that only phrases that name a part are read so."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import deixis
from deixis.data.sizes import InputSizes
from deixis.errors import DeixisError
from deixis.grounding.lite.config import LiteConfig
from deixis.grounding.lite.model import LiteGrounder
from deixis.grounding.lite.wearers import wearer_logits
from deixis.text.vocabulary import Entry, Vocabulary
from tests.grounding.conftest import batch_of

CAPTIONER = Path(deixis.__file__).parent / "weights" / "captioner"

SHIRT, HALF_OUT, WEARER, OTHER, PADDING = range(5)
BOXES = torch.tensor(
    [
        [10.0, 20.0, 20.0, 40.0],  # a shirt
        [15.0, 20.0, 35.0, 40.0],  # something of which a quarter lies in the wearer
        [10.0, 0.0, 20.0, 80.0],  # who wears the shirt
        [50.0, 0.0, 60.0, 80.0],  # somebody else
        [0.0, 0.0, 90.0, 90.0],
    ]
).unsqueeze(0)


def test_a_thing_gets_the_shares_within_it_times_its_objectness() -> None:
    logits = torch.tensor([[math.log(0.6), math.log(0.2), math.log(0.1), math.log(0.1), -torch.inf]])
    objectness = torch.tensor([[0.05, 0.1, 0.9, 0.8, 1.0]])
    found = wearer_logits(logits, BOXES, objectness)[0]
    carried = 0.6 * 1 + 0.2 * 0.25**2 + 0.1 * 1  # the shirt whole, a quarter of the second, itself
    assert float(found[WEARER]) == pytest.approx(math.log(carried) + math.log(0.9), abs=1e-5)
    assert float(found[OTHER]) == pytest.approx(math.log(0.1) + math.log(0.8), abs=1e-5)
    assert found.argmax() == WEARER
    assert found[PADDING] == -torch.inf


@torch.no_grad()
def test_only_phrases_that_name_a_part_are_read_so() -> None:
    vocabulary = Vocabulary([Entry(word, 9, "NN", word) for word in ("man", "shirt", "hand", "grass")])
    torch.manual_seed(0)
    sizes = InputSizes(words=len(vocabulary), features=5, classes=3)
    model = LiteGrounder(LiteConfig(width=6, position=0.0), sizes, vocabulary).eval()
    made = batch_of()
    made = replace(made, regions=replace(made.regions, regionness=torch.rand(2, 4)))
    for word, part in (("man", False), ("grass", False), ("shirt", True), ("hand", True)):
        batch = replace(made, words=torch.full_like(made.words, vocabulary.id(word)))
        model.answers = replace(model.answers, things=False)
        usual = model.phrase_logits(batch)
        model.answers = replace(model.answers, things=True)
        assert torch.equal(model.phrase_logits(batch), usual) is not part, word


def test_lite_answers_with_wearers_and_captioners_are_refused() -> None:
    grounder = deixis.load("lite", extractor=False, things=True).grounder
    assert grounder is not None
    assert isinstance(grounder.model, LiteGrounder)
    assert grounder.model.answers.things
    with pytest.raises(DeixisError, match="captioner does not know who wears what: leave --things out"):
        deixis.load(CAPTIONER, extractor=False, things=True)
