"""Learning rates over time."""

from __future__ import annotations

import math
from typing import Any

import pytest

from deixis.training.recipe import ScheduleRecipe
from deixis.training.schedules import Schedule


def test_step_cuts_every_so_many_epochs() -> None:
    schedule = Schedule(ScheduleRecipe("step", every=3, factor=0.8), lr=5e-4, total=1000)  # GVD and POS-SCAN
    rates = [schedule.rate(epoch=epoch, step=epoch * 10) for epoch in range(7)]
    assert rates == pytest.approx([5e-4] * 3 + [4e-4] * 3 + [3.2e-4])


def test_milestones_cut_after_steps() -> None:
    schedule = Schedule(ScheduleRecipe("milestones", at=(32_000, 40_000), factor=0.1), lr=1e-3, total=80_000)  # ReIR
    rates = [schedule.rate(epoch=0, step=step) for step in (0, 31_999, 32_000, 39_999, 40_000, 79_999)]
    assert rates == pytest.approx([1e-3, 1e-3, 1e-4, 1e-4, 1e-5, 1e-5])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"kind": "milestones"}, "goes with kind milestones"),
        ({"kind": "step", "at": (3,)}, "goes with kind milestones"),
        ({"kind": "milestones", "at": (40, 32)}, "growing"),
        ({"kind": "milestones", "at": (0,)}, "growing"),
    ],
)
def test_wrong_milestones_are_refused(options: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ScheduleRecipe(**options)


def test_plateau_waits_for_patience_and_stops_at_the_floor() -> None:
    schedule = Schedule(ScheduleRecipe("plateau", factor=0.1, patience=1, floor=5e-6), lr=1e-4, total=1000)
    rates = []
    for metric in [0.3, 0.2, 0.3, 0.4, 0.4, 0.4, 0.4, 0.4]:  # equal is no gain
        schedule.observe(metric)
        rates.append(schedule.rate(epoch=0, step=0))
    assert rates == pytest.approx([1e-4, 1e-4, 1e-5, 1e-5, 1e-5, 5e-6, 5e-6, 5e-6])


def test_plateau_goes_on_from_its_state() -> None:
    recipe = ScheduleRecipe("plateau", factor=0.5, patience=2)
    metrics = [0.1, 0.1, 0.05, 0.02, 0.3, 0.2, 0.1, 0.0, 0.0]
    whole = Schedule(recipe, lr=1.0, total=10)
    for metric in metrics:
        whole.observe(metric)
    for cut in range(len(metrics)):
        first = Schedule(recipe, lr=1.0, total=10)
        for metric in metrics[:cut]:
            first.observe(metric)
        second = Schedule(recipe, lr=1.0, total=10)
        second.load(first.state())
        for metric in metrics[cut:]:
            second.observe(metric)
        assert second.state() == whole.state()


def test_cosine_with_warm_up() -> None:
    schedule = Schedule(ScheduleRecipe("cosine", warmup=10, floor=0.1), lr=1.0, total=110)
    assert schedule.rate(epoch=0, step=0) == pytest.approx(0.1)
    assert schedule.rate(epoch=0, step=9) == pytest.approx(1.0)
    assert schedule.rate(epoch=0, step=60) == pytest.approx(0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi / 2)))
    assert schedule.rate(epoch=0, step=110) == pytest.approx(0.1)
    assert schedule.rate(epoch=0, step=500) == pytest.approx(0.1)


def test_a_floor_above_the_rate_does_not_raise_it() -> None:
    assert Schedule(ScheduleRecipe(floor=1.0), lr=0.5, total=1).rate(epoch=0, step=0) == 0.5
