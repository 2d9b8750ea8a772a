"""The check of captions: scores of bare words, the fit, and what it does to a caption."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deixis.answering.check import check
from deixis.answering.load import Deixis, load
from deixis.errors import DeixisError
from deixis.evaluation.check import calibrate, check_section, judge_captions
from deixis.evaluation.evaluate import evaluate
from deixis.evaluation.setting import EvaluationOptions
from deixis.grounding.presence import Presence, fit_presence, match_words

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
    caption = model.caption(regions, check=False)
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
    work = evaluate(fitted, str(PHOTOS), EvaluationOptions(replicates=0))
    section = check_section(work)
    assert section is not None
    words = judge_captions(work)
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
