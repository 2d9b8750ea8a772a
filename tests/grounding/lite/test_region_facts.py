"""Facts about regions, counted by hand."""

from __future__ import annotations

import math

import torch

from deixis.data.batch import RegionBatch
from deixis.grounding.lite.region_facts import FACTS, attached, region_facts

BOXES = [[0.0, 0, 100, 50], [10, 10, 30, 30], [90, 40, 130, 60], [0, 0, 200, 100]]


def regions(mask: list[bool]) -> RegionBatch:
    return RegionBatch(
        ids=("0",),
        features=torch.zeros(1, 4, 2),
        boxes=torch.tensor([BOXES]),
        mask=torch.tensor([mask]),
        sizes=torch.tensor([[200.0, 100.0]]),
        objectness=torch.tensor([[0.64, 0.01, 0.04, 0.0]]),
        frame=torch.zeros(1, 4, dtype=torch.long),
    )


def test_a_region_is_attached_to_the_larger_thing_around_it() -> None:
    found = attached(regions([True] * 4))[0].tolist()
    # the second lies in the first wholly, the third by an eighth (10 of 40 wide, 10 of 20 high); nothing holds it
    assert [round(value, 4) for value in found] == [0.0, 0.8, 0.1, 0.0]


def test_padding_holds_nothing() -> None:
    assert attached(regions([False, True, True, True]))[0, 1] == torch.tensor(0.0)


def test_facts_say_size_place_shape_and_borders() -> None:
    facts = region_facts(regions([True] * 4))
    assert facts.shape == (1, 4, FACTS)
    first = facts[0, 0]
    assert math.isclose(float(first[3]), math.log(0.25), abs_tol=1e-5)  # share of the picture
    assert [float(first[5]), float(first[6])] == [0.25, 0.25]  # middle
    assert math.isclose(float(first[9]), 0.0, abs_tol=1e-5)  # as high as wide, in shares of the picture
    assert math.isclose(float(first[12]), math.log(0.03), abs_tol=1e-5)  # attached to nothing
    assert first[13:17].tolist() == [1.0, 1.0, 0.0, 0.0]  # touches left and top
    assert torch.allclose(first[17:], torch.tensor([0.0, 0.0, 0.5, 0.5]))
