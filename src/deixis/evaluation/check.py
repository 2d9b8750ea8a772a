"""Fit and measure the check of captions on photos with reference captions: does doubt fall on what is not there?

A word counts as present if a reference caption of its photo names it (equal lemmas). People do not name everything, and
say "child" where the model says "boy", so some words that are right count as absent: probabilities come out careful.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deixis.answering.load import Deixis
from deixis.errors import BadFileError, DeixisError, TooFewError
from deixis.evaluation.captions import caption_examples
from deixis.evaluation.setting import Evaluation, EvaluationOptions, prepare
from deixis.grounding.calibration import area_under_curve, calibration_error, cross_fitted
from deixis.grounding.presence import Presence, fit_presence, judged_words, named_in
from deixis.metrics.bootstrap import MeanSample, Sample
from deixis.metrics.report import Section
from deixis.models.bundle import Bundle, find_bundle
from deixis.models.checkpoint import load_config

LEAST = 20
"""Words of either kind that a fit needs."""
PROTOCOL = "check of generated words (present: named in a reference caption of the photo)"


@dataclass(frozen=True, slots=True, eq=False)
class JudgedWords:
    """Every groundable word of every generated caption that the grounder knows."""

    scores: NDArray[np.float64]  # (M,)
    present: NDArray[np.bool_]  # (M,)
    group: NDArray[np.int64]  # (M,) which photo


def judge_captions(work: Evaluation) -> JudgedWords:
    """Ask the grounder about the words of all captions of an evaluation."""
    grounder = work.model.grounder
    if grounder is None:
        raise DeixisError(f"{work.model.name} has no grounder to check captions with: name one")
    judge, source = grounder.grounder(), work.source(grounder)
    examples = {example.id: example for example in work.examples}
    rows: list[tuple[float, bool, int]] = []
    for number, caption in enumerate(work.captions):
        regions = source.get(caption.image)
        named = named_in(examples[caption.image], grounder.vocabulary)
        rows += [(*row, number) for row in judged_words(judge, grounder.vocabulary, caption, regions, named)]
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return JudgedWords(table[:, 0], table[:, 1] > 0, table[:, 2].astype(np.int64))


def calibrate(model: Deixis, dataset: str, options: EvaluationOptions) -> tuple[Presence, dict[str, float]]:
    """Fit the probabilities on a split; the figures beside them are cross-fitted by photo."""
    work = prepare(model, dataset, options)
    work.captions = caption_examples(work)
    words = judge_captions(work)
    counts = int(words.present.sum()), int((~words.present).sum())
    if min(counts) < LEAST:
        raise TooFewError(
            f"{counts[0]} words that are there and {counts[1]} that are not are too few to fit the check: "
            f"give --split with more captioned photos (at least {LEAST} words of each kind)"
        )
    probability = cross_fitted(words.scores[:, None], words.present, words.group)
    facts = {
        "words": float(len(words.scores)),
        "present": float(words.present.mean()),
        "AUC": area_under_curve(words.scores, words.present),
        "calibration_error": calibration_error(probability, words.present),
    }
    return fit_presence(words.scores, words.present), facts


def presence_of_start(bundle: Bundle) -> tuple[str, Presence] | None:
    """Return the fit of the model that a bundle's grounder was started from, and that model's name.

    A tuned grounder's matching scores stay near those it began with, so that fit is the better guess than none.
    """
    name = None if bundle.grounder is None else load_config(bundle.grounder).recipe.get("start_from")
    try:
        presence = None if name is None else find_bundle(name).card.presence
    except BadFileError:  # it is not here any more
        return None
    return None if name is None or presence is None else (str(name), presence)


def check_section(work: Evaluation) -> Section | None:
    """Measure the check on captions that were generated already; None where nothing was fitted."""
    presence = work.model.card.presence
    if presence is None or not work.captions:
        return None
    if work.asking.threshold is not None:
        presence = replace(presence, threshold=work.asking.threshold)
    words = judge_captions(work)
    if not len(words.scores):
        return None
    probability = np.array([presence(score) for score in words.scores])
    flagged = probability < presence.threshold
    photos = len(work.captions)
    samples: dict[str, Sample] = {
        "absent": MeanSample.of((~words.present).astype(np.float64), words.group, photos),
        "flagged": MeanSample.of(flagged.astype(np.float64), words.group, photos),
    }
    if flagged.any():
        right = (~words.present[flagged]).astype(np.float64)
        samples["flag_precision"] = MeanSample.of(right, words.group[flagged], photos)
    if not words.present.all():
        caught = flagged[~words.present].astype(np.float64)
        samples["flag_recall"] = MeanSample.of(caught, words.group[~words.present], photos)
    more = {"calibration_error": calibration_error(probability, words.present)}
    if 0 < words.present.sum() < len(words.present):
        more["AUC"] = area_under_curve(words.scores, words.present)
    return Section.of_samples(
        PROTOCOL,
        len(words.scores),
        "words",
        samples,
        tuple(caption.image for caption in work.captions),
        scores=more,
        **work.drawing,
    )
