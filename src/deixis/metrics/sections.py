"""Sections of a report: the numbers of one protocol with intervals, breakdowns and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from deixis.metrics.bootstrap import MeanSample, Sample, draw_weights, intervals, value_of
from deixis.metrics.captions.densecap import DenseScores
from deixis.metrics.captions.scores import CaptionScores
from deixis.metrics.grounding.attention_accuracy import AttentionAccuracy
from deixis.metrics.grounding.error_types import classify_errors, right_boxes
from deixis.metrics.grounding.f1 import f1_by_frequency, score_grounding
from deixis.metrics.grounding.object_words import GroundedItem
from deixis.metrics.grounding.phrases import THRESHOLDS, PhraseCase, Protocol, score_phrases
from deixis.metrics.plots import bars, curve, shares
from deixis.metrics.report import Breakdown, Section
from deixis.types import Box

GENERATED = "grounding F1 of generated sentences (GVD / ActivityNet-Entities rules)"
TRUTH = "attention accuracy on ground-truth sentences (GVD / ActivityNet-Entities rules)"
RIGHT_BOX = "right_box_given_right_word"
CAPTIONS = "COCO caption metrics"
_HEADLINES = ("F1_all", "F1_loc", "F1_all_per_sent", "F1_loc_per_sent")


def grounding_section(
    items: Sequence[GroundedItem],
    *,
    photos: bool,
    replicates: int,
    seed: int,
    frequency: Mapping[str, int] | None = None,
) -> Section:
    """Score generated sentences: F1 in all its variants, error types, classes, and classes by how frequent they are."""
    result = score_grounding(items, photos=photos)
    errors = classify_errors(items, photos=photos)
    groups = f1_by_frequency(result.classes["all"], frequency)
    samples = {**result.samples, RIGHT_BOX: right_boxes(items, result.groups)}
    found = intervals(samples, draw_weights(len(result.groups), replicates, seed)) if replicates else {}
    scores = {**result.scores, RIGHT_BOX: value_of(samples[RIGHT_BOX])}
    # the headlines first, then what they are made of
    ordered = {name: scores[name] for name in (*_HEADLINES, *(n for n in scores if n not in _HEADLINES))}
    ordered["classes_generated"] = result.generated_share
    breakdowns = (
        Breakdown(
            "Error types (Distributed Attention 4.5), shares of all words",
            ("type", "words", "share"),
            tuple((name, errors.five[name], share) for name, share in errors.five_shares.items()),
        ),
        Breakdown(
            "Wrong boxes of right words",
            ("type", "words", "share"),
            tuple((name, errors.three[name], share) for name, share in errors.three_shares.items()),
        ),
        Breakdown(
            "If every partial grounding were right (upper bound)",
            ("metric", "value"),
            tuple((name, errors.bound[name]) for name in _HEADLINES),
        ),
        Breakdown(
            "Mean class F1_all, classes in ten groups from frequent to rare",
            ("group", "classes", "F1_all"),
            tuple((str(at), count, value) for at, (count, value) in enumerate(groups, 1)),
        ),
        Breakdown(
            "Object classes",
            ("class", "generated", "precision_all", "references", "recall_all", "F1_all"),
            tuple(
                (score.label, score.precision_count, score.precision, score.recall_count, score.recall, score.f1)
                for score in result.classes["all"]
            ),
        ),
    )
    plots = (
        bars("Grounding F1", [(name, scores[name], *found.get(name, (None, None))) for name in _HEADLINES]),
        shares("Error types", [(name.replace("_", " "), share) for name, share in errors.five_shares.items()]),
        bars(
            "Class F1_all, from frequent to rare", [(f"group {i}", v, None, None) for i, (_, v) in enumerate(groups, 1)]
        ),
    )
    return Section(
        protocol=f"{GENERATED}, {'photos' if photos else 'clips'}",
        items=result.submitted,
        what="captions",
        scores=ordered,
        intervals=found,
        samples=samples,
        groups=result.groups,
        breakdowns=breakdowns,
        plots=plots,
    )


def attention_section(result: AttentionAccuracy, *, photos: bool, replicates: int, seed: int) -> Section:
    """Show attention accuracy, overall and by class."""
    table = Breakdown(
        "Object classes",
        ("class", "words", "accuracy"),
        tuple((label, count, accuracy) for label, (accuracy, count) in result.classes.items()),
    )
    return Section.of_samples(
        f"{TRUTH}, {'photos' if photos else 'clips'}",
        result.sentences,
        "sentences",
        {"attention_accuracy": result.sample},
        result.groups,
        replicates=replicates,
        seed=seed,
        breakdowns=(table,),
    )


def phrase_section(
    cases: Sequence[PhraseCase],
    protocol: Protocol,
    proposals: Mapping[str, Sequence[Box]] | None,
    *,
    replicates: int,
    seed: int,
) -> Section:
    """Score phrases under one protocol."""
    result = score_phrases(cases, protocol, proposals)
    titles = {"type": "By phrase type", "class": "By coarse class", "boxes": "By number of annotated boxes"}
    breakdowns = tuple(
        Breakdown(
            titles[kind],
            (kind, "phrases", *groups[0].scores),
            tuple((group.name, group.count, *group.scores.values()) for group in groups),
        )
        for kind, groups in result.breakdowns.items()
    )
    scores = result.scores
    plots = [curve("Accuracy against IoU threshold", [(t, scores[f"acc@{t}"]) for t in THRESHOLDS], "IoU")]
    if "class" in result.breakdowns:
        rows = [(group.name, group.scores["R@1"], None, None) for group in result.breakdowns["class"][:10]]
        plots.append(bars("R@1 by coarse class", rows))
    return Section.of_samples(
        f"{protocol.name} ({protocol.used_by})",
        result.count,
        "phrases",
        result.samples,
        result.groups,
        replicates=replicates,
        seed=seed,
        breakdowns=breakdowns,
        plots=tuple(plots),
    )


def caption_section(result: CaptionScores, *, replicates: int, seed: int) -> Section:
    """Show caption metrics; those that are means over captions get an interval, corpus BLEU and METEOR have none."""
    size = len(result.ids)
    samples: dict[str, Sample] = {
        name: MeanSample(values.astype(np.float64), np.ones(size))
        for name, values in result.per_caption.items()
        if name in result.corpus and not name.startswith(("BLEU", "METEOR"))
    }
    found = intervals(samples, draw_weights(size, replicates, seed)) if replicates else {}
    rows = [(name, value, *found.get(name, (None, None))) for name, value in result.corpus.items()]
    return Section(
        CAPTIONS, size, "captions", result.corpus, found, samples, result.ids, plots=(bars("Caption metrics", rows),)
    )


def dense_section(result: DenseScores, *, replicates: int, seed: int) -> Section:
    """Show captions of events in clips: scores per video, averaged over videos, then over time overlaps."""
    size = len(result.videos)
    samples = {name: MeanSample(values, np.ones(size)) for name, values in result.per_video.items()}
    levels = tuple(result.by_threshold)
    table = Breakdown(
        "By time overlap",
        ("tIoU", *result.corpus, "precision", "recall"),
        tuple(
            (f"{level:g}", *result.by_threshold[level].values(), result.precision[level], result.recall[level])
            for level in levels
        ),
    )
    return Section.of_samples(
        "ActivityNet Captions, per video, mean over tIoU " + "/".join(f"{level:g}" for level in levels),
        size,
        "videos",
        samples,
        result.videos,
        replicates=replicates,
        seed=seed,
        breakdowns=(table,),
    )
