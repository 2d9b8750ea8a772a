"""The check of captions: scores of bare words, the fit, and what it does to a caption."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.answering.calibrate import calibrate, check_section, judge_captions
from deixis.answering.check import check
from deixis.answering.load import Deixis, load
from deixis.answering.measure import evaluate_bundle
from deixis.answering.presence import Presence, auc, calibration_error, cross_fitted, fit_presence, match_words
from deixis.errors import DeixisError
from deixis.training.evaluate import EvaluationOptions

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"


@pytest.fixture(scope="module")
def model(small_bundle: Path) -> Deixis:
    return load(small_bundle)


def test_the_fit_finds_the_slope_that_made_the_labels() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=20_000)
    present = rng.random(20_000) < 1 / (1 + np.exp(-(2.0 * scores - 0.7)))
    fitted = fit_presence(scores, present)
    assert fitted.slope == pytest.approx(2.0, abs=0.1)
    assert fitted.offset == pytest.approx(-0.7, abs=0.1)
    assert fitted(0.35) == pytest.approx(0.5, abs=0.02)
    group = np.arange(20_000) // 4
    assert calibration_error(cross_fitted(scores, present, group), present) < 0.02


def test_the_fit_stands_at_the_minimum_of_its_loss() -> None:
    scores, present = np.array([-1.0, 0.2, 0.4, 2.0, 3.0]), np.array([False, True, False, True, True])
    fitted = fit_presence(scores, present)
    targets = np.where(present, 4 / 5, 1 / 4)  # Platt's: (3 + 1) / (3 + 2) and 1 / (2 + 2)

    def loss(slope: float, offset: float) -> float:
        p = 1 / (1 + np.exp(-(slope * scores + offset)))
        return float(-(targets * np.log(p) + (1 - targets) * np.log(1 - p)).sum())

    best = loss(fitted.slope, fitted.offset)
    for ds, do in ((1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3)):
        assert loss(fitted.slope + ds, fitted.offset + do) > best


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_auc_counts_pairs(rows: list[tuple[int, bool]]) -> None:
    scores, present = np.array([float(s) for s, _ in rows]), np.array([p for _, p in rows])
    pairs = [(a > b) + 0.5 * (a == b) for a, yes in rows if yes for b, no in rows if not no]
    if pairs:
        assert auc(scores, present) == pytest.approx(np.mean(pairs))
    else:
        assert np.isnan(auc(scores, present))


def test_a_hand_worked_calibration_error() -> None:
    probability = np.array([0.05, 0.05, 0.95, 0.95])
    present = np.array([False, False, True, False])
    assert calibration_error(probability, present) == pytest.approx(0.5 * 0.05 + 0.5 * 0.45)


def test_words_are_matched_one_by_one(model: Deixis) -> None:
    regions = model.regions([PHOTOS / "chelsea.jpg"])[0].top(20)
    judge = model.grounder.grounder()  # type: ignore[union-attr]
    cat, nothing, table, again = match_words(judge, model.words, regions, ["cat", "zorblax", "table", "cat"])
    assert nothing is None
    assert cat == again
    assert cat == pytest.approx(match_words(judge, model.words, regions, ["cat"])[0], abs=1e-5)
    assert cat is not None
    assert table is not None
    assert cat > table, "the matcher knows this photo by heart"
    assert match_words(judge, model.words, regions, ["zorblax"]) == [None]


def test_doubt_follows_the_threshold(model: Deixis) -> None:
    regions = model.regions([PHOTOS / "chelsea.jpg"])[0].top(20)
    caption = model.caption(regions)
    judge = model.grounder.grounder()  # type: ignore[union-attr]
    scores = match_words(judge, model.words, regions, ["cat", "eyes"])
    assert None not in scores
    presence = Presence(3.0, 0.25)
    expected = [1 / (1 + np.exp(-(3.0 * float(score or 0) + 0.25))) for score in scores]
    checked = [word for word in check(caption, regions, judge, model.words, presence).words if word.groundable]
    assert [word.presence for word in checked] == pytest.approx(expected)
    for threshold in (0.0, 1.1):
        words = check(caption, regions, judge, model.words, replace(presence, threshold=threshold)).words
        assert all(word.trusted == (threshold == 0.0) for word in words if word.groundable)
        assert all(word.trusted and word.presence is None for word in words if not word.groundable)


def test_measured_on_generated_captions(model: Deixis) -> None:
    fitted = Deixis(model.extractor, model.captioner, model.grounder, card=replace(model.card, presence=Presence(1, 0)))
    work = evaluate_bundle(fitted, str(PHOTOS), EvaluationOptions(replicates=0))
    section = check_section(fitted, work)
    assert section is not None
    words = judge_captions(fitted, work)
    absent = ~words.present
    assert section.scores["absent"] == pytest.approx(absent.mean())
    flagged = np.array([1 / (1 + np.exp(-score)) for score in words.scores]) < 0.5
    assert section.scores["flagged"] == pytest.approx(flagged.mean())
    assert section.protocol in [one.protocol for one in work.sections]
    # "suit" and "eyes" are said and named by the references of these photos; the matcher must know all of them
    assert len(words.scores) == sum(word.groundable for caption in work.captions for word in caption.words)


def test_a_handful_of_words_is_too_few_to_fit(model: Deixis) -> None:
    with pytest.raises(DeixisError, match="too few to fit"):
        calibrate(model, str(PHOTOS), EvaluationOptions())
