"""Bootstrap: vectorised samples against drawing photos one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.errors import BadFileError
from deixis.metrics.bootstrap import (
    MacroSample,
    MeanSample,
    draw_weights,
    estimate_replicates,
    interval,
    paired_difference,
    sample_from_json,
    value_of,
)
from deixis.metrics.grounding.f1 import score_grounding
from deixis.metrics.grounding.object_words import GroundedItem, PredictedWord, ReferenceSentence


def random_items(seed: int, count: int = 12) -> list[GroundedItem]:
    rng = np.random.default_rng(seed)
    labels = ["man", "dog", "hat", "ball"]
    items = []
    for at in range(count):
        words = [(i, labels[rng.integers(4)], (0.0, 0.0, 9.0, 9.0), 0) for i in range(rng.integers(0, 4))]
        boxes = [(0.0, 0.0, 9.0, float(rng.integers(2, 10))) for _ in range(rng.integers(1, 4))]
        predicted = tuple(PredictedWord(labels[rng.integers(4)], "", (box,)) for box in boxes)
        items.append(GroundedItem(str(at), (ReferenceSentence.of(words),), predicted if rng.random() < 0.8 else None))
    return items


def test_a_replicate_of_f1_equals_scoring_the_drawn_photos_anew() -> None:
    items = random_items(0)
    result = score_grounding(items)
    weights = draw_weights(len(items), 20, seed=3)
    for name, sample in result.samples.items():
        drawn = estimate_replicates(sample, weights)
        for row, value in zip(weights, drawn, strict=True):
            again = [
                GroundedItem(f"{item.id}x{copy}", item.references, item.predicted)
                for item, times in zip(items, row, strict=True)
                for copy in range(int(times))
            ]
            assert value == pytest.approx(score_grounding(again).scores[name], abs=1e-12), name


def test_intervals_are_seeded_and_hold_the_value() -> None:
    rng = np.random.default_rng(0)
    sample = MeanSample.of(rng.random(500), rng.integers(0, 100, 500), 100)
    low, high = interval(sample, draw_weights(100, 500, seed=1))
    assert low < value_of(sample) < high
    assert (low, high) == interval(sample, draw_weights(100, 500, seed=1))
    assert (low, high) != interval(sample, draw_weights(100, 500, seed=2))


def test_the_interval_of_independent_entries_is_the_textbook_one() -> None:
    hits = (np.arange(1000) % 4 == 0).astype(np.float64)  # 25 %
    low, high = interval(MeanSample.of(hits, np.arange(1000), 1000), draw_weights(1000, 2000, seed=0))
    spread = 1.96 * (0.25 * 0.75 / 1000) ** 0.5
    assert low == pytest.approx(0.25 - spread, abs=0.003)
    assert high == pytest.approx(0.25 + spread, abs=0.003)


def test_an_interval_stays_where_the_metric_can_be() -> None:
    """Two doubted words on twelve photos, one of them rightly: moved percentiles used to pass 100 %."""
    total, count = np.zeros(12), np.zeros(12)
    total[0], count[:2] = 1, 1
    drawn = estimate_replicates(MeanSample(total, count), draw_weights(12, 1000))
    assert np.quantile(drawn, 0.975) - drawn.mean() + 0.5 > 1, "the premise: unbounded, it would"
    assert interval(MeanSample(total, count), draw_weights(12, 1000))[1] == 1
    scores = np.array([3.0, 8.0, 0.5])  # CIDEr goes beyond 1, but a mean never beyond its parts
    assert MeanSample(scores, np.ones(3)).bounds == (0.5, 8.0)
    assert MeanSample(np.zeros(2), np.zeros(2)).bounds == (0.0, 0.0)


def test_paired_difference() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(200)
    groups = np.arange(200)
    a, b = MeanSample.of(base + 0.02, groups, 200), MeanSample.of(base, groups, 200)
    better = paired_difference([a], [b])
    assert better.value == pytest.approx(0.02)
    assert better.p < 0.01  # the same photos for both, so even a small steady gain shows
    assert paired_difference([b], [b]).p == 1
    noise = MeanSample.of(rng.random(200), groups, 200)
    assert paired_difference([noise], [b]).p > 0.05
    seeds = paired_difference([a, b], [b, b])
    assert seeds.value == pytest.approx(0.01)
    with pytest.raises(ValueError, match="same groups"):
        paired_difference([a], [MeanSample.of(base[:9], groups[:9], 9)])


def test_one_photo_decides_nothing() -> None:
    """Of fifty photos one differs: (49/50)^50 = 36 % of replicates miss it, so p is about .73 and never small."""
    groups = np.arange(50)
    base = np.zeros(50)
    for at in (0, 17, 49):
        one = base.copy()
        one[at] = 1
        found = paired_difference([MeanSample.of(one, groups, 50)], [MeanSample.of(base, groups, 50)])
        assert found.p == pytest.approx(2 * (49 / 50) ** 50, abs=0.1)


@pytest.mark.parametrize(("photos", "least"), [(1, 1.0), (4, 0.125), (6, 0.03125)])
def test_a_handful_of_photos_is_never_surer_than_their_signs(photos: int, least: float) -> None:
    """Four photos that all get better do so by chance once in eight, one way or the other (the sign test)."""
    base, groups = np.linspace(0, 0.5, photos), np.arange(photos)
    found = paired_difference([MeanSample.of(base + 0.3, groups, photos)], [MeanSample.of(base, groups, photos)])
    assert found.p == pytest.approx(least)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_samples_survive_json(seed: int) -> None:
    items = [*random_items(seed), GroundedItem("x", (ReferenceSentence.of([(0, "man", (0, 0, 1, 1), 0)]),), ())]
    for name, sample in score_grounding(items).samples.items():
        again = sample_from_json(sample.to_json(), name)
        assert isinstance(again, MacroSample | MeanSample)
        weights = draw_weights(sample.groups, 3, seed)
        assert np.array_equal(again.estimate(weights), sample.estimate(weights))


def test_a_broken_sample_is_named() -> None:
    with pytest.raises(BadFileError, match=r"run.json: R@1 .*total"):
        sample_from_json({"kind": "mean", "count": [1]}, "run.json: R@1")
    with pytest.raises(BadFileError, match="'median'"):
        sample_from_json({"kind": "median"}, "run.json: R@1")
