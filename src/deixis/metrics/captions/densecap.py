"""The per-video protocol of ActivityNet Captions: sentences with times against every reference that overlaps.

Krishna et al., "Dense-Captioning Events in Videos" (ICCV 2017), as the challenge computes it: inside one video each
predicted sentence makes a pair with every reference whose time overlap (tIoU) reaches the threshold; one that reaches
none is paired with a word nobody writes, so it costs. A video's score is the corpus score over its pairs (CIDEr's
document frequencies come from these pairs alone); scores are averaged over videos, then over the thresholds.
**These numbers must not be put beside corpus scores**: CIDEr in particular means something else.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deixis.errors import DeixisError
from deixis.metrics.captions.scores import METRICS, score_words
from deixis.text.tokens import scoring_words
from deixis.types import ClipSegment, Example

Events = dict[str, list["Event"]]
"""Events by video."""
THRESHOLDS = (0.3, 0.5, 0.7, 0.9)
_NOBODYS_WORD = "zqxjkvwzqxjkv"


@dataclass(frozen=True, slots=True)
class Event:
    """A sentence about the part of a video between two times, in seconds."""

    start: float
    end: float
    sentence: str

    def __post_init__(self) -> None:
        """Refuse times that are no interval and sentences that are no text."""
        if not (math.isfinite(self.start) and math.isfinite(self.end) and self.start <= self.end):
            raise DeixisError(f"an event from {self.start} to {self.end}: times must be numbers, the start first")
        if not isinstance(self.sentence, str):
            raise DeixisError(f"the sentence of an event is {self.sentence!r}, must be text")


@dataclass(frozen=True, slots=True)
class DenseScores:
    """Scores by printed name, averaged over videos; ``corpus`` also over the thresholds."""

    videos: tuple[str, ...]
    corpus: dict[str, float]
    by_threshold: dict[float, dict[str, float]]
    per_video: dict[str, NDArray[np.float64]]  # each (V,), averaged over the thresholds
    precision: dict[float, float]
    """Share of predicted events that overlap a reference, by threshold."""
    recall: dict[float, float]
    """Share of reference events that a prediction overlaps, by threshold."""


def score_dense_captions(
    predictions: Mapping[str, Sequence[Event]],
    references: Sequence[Mapping[str, Sequence[Event]]],
    metrics: Collection[str] = ("bleu", "rouge", "cider"),
    *,
    thresholds: Sequence[float] = THRESHOLDS,
    max_events: int = 1000,
) -> DenseScores:
    """Score predicted events against one or several sets of reference events.

    Args:
        predictions: Video id to events; only the first ``max_events`` of a video count. A video without scores 0.
        references: Annotations of the same videos by different people (ActivityNet's val has two); they are joined.
        metrics: Names among :data:`deixis.metrics.captions.scores.METRICS`.
        thresholds: Time overlaps to average over.
        max_events: As in the challenge.
    """
    if unknown := [name for name in metrics if name not in METRICS]:
        raise DeixisError(f"unknown caption metric {unknown[0]!r}: choose among {', '.join(METRICS)}")
    if not thresholds or not all(0 < value <= 1 for value in thresholds):
        raise DeixisError(f"the thresholds are {list(thresholds)}: give one or several above 0 and up to 1")
    videos = tuple(dict.fromkeys(name for annotation in references for name in annotation))
    if not videos:
        raise DeixisError("there are no reference events")
    if not any(predictions.values()):
        raise DeixisError("there are no predicted events to score")
    if strange := [name for name in predictions if name not in set(videos)]:
        raise DeixisError(f"video {strange[0]!r} has predictions but no references ({len(strange)} such): wrong split?")
    rows = [_score_video(name, predictions, references, metrics, thresholds, max_events) for name in videos]
    names = list(next((scores[0] for scores, _ in rows if scores[0]), {}))
    table = np.array([[[each.get(n, 0.0) for n in names] for each in scores] for scores, _ in rows])  # (V, L, M)
    found = np.array([detection for _, detection in rows])  # (V, L, 2)
    return DenseScores(
        videos=videos,
        corpus={name: float(table[:, :, at].mean()) for at, name in enumerate(names)},
        by_threshold={
            level: {name: float(table[:, row, at].mean()) for at, name in enumerate(names)}
            for row, level in enumerate(thresholds)
        },
        per_video={name: table[:, :, at].mean(1) for at, name in enumerate(names)},
        precision={level: float(found[:, row, 0].mean()) for row, level in enumerate(thresholds)},
        recall={level: float(found[:, row, 1].mean()) for row, level in enumerate(thresholds)},
    )


def events_of_clips(examples: Iterable[Example], texts: Mapping[str, str]) -> tuple[Events, Events]:
    """Return what was said about segments of clips and what people said, by video, for :func:`score_dense_captions`.

    ``texts`` are the sentences by example. Examples are named ``VIDEO_segment_00``, as ActivityNet-Entities does; one
    named otherwise is a video of its own.
    """
    said: dict[str, list[Event]] = {}
    written: dict[str, list[Event]] = {}
    for example in examples:
        source = example.source
        if not isinstance(source, ClipSegment):
            raise DeixisError(f"{example.id} is a photo: the per-video protocol is for segments of clips")
        video = example.id.rpartition("_segment_")[0] or example.id
        written.setdefault(video, []).extend(Event(source.start, source.end, c.text) for c in example.captions)
        if example.id in texts:
            said.setdefault(video, []).append(Event(source.start, source.end, texts[example.id]))
    return said, written


def time_overlap(one: Event, other: Event) -> float:
    """Return intersection over union of two intervals; two that do not touch have 0."""
    shared = max(0.0, min(one.end, other.end) - max(one.start, other.start))
    apart = one.end - one.start + other.end - other.start
    return shared / (min(max(one.end, other.end) - min(one.start, other.start), apart) + 1e-8)


def _score_video(
    video: str,
    predictions: Mapping[str, Sequence[Event]],
    references: Sequence[Mapping[str, Sequence[Event]]],
    metrics: Collection[str],
    thresholds: Sequence[float],
    max_events: int,
) -> tuple[list[dict[str, float]], list[tuple[float, float]]]:
    """Return for each threshold the scores by name, and precision and recall of the times."""
    events = list(predictions.get(video, ()))[:max_events]
    annotations = [annotation[video] for annotation in references if annotation.get(video)]
    overlaps = [
        np.array([[time_overlap(e, r) for r in a] for e in events]).reshape(len(events), len(a)) for a in annotations
    ]
    said = [_words(event) for event in events]
    written = [_words(event) for annotation in annotations for event in annotation]
    joined = np.concatenate(overlaps, axis=1) if overlaps else np.zeros((len(events), 0))  # (E, R)
    scores: list[dict[str, float]] = []
    for level in thresholds:
        pairs = joined >= level
        if scores and np.array_equal(pairs, joined >= thresholds[len(scores) - 1]):
            scores.append(scores[-1])  # the usual case where the times are given: nothing new to compute
        else:
            scores.append(_score_pairs(pairs, said, written, metrics))
    return scores, [_detection(overlaps, level) for level in thresholds]


def _score_pairs(
    pairs: NDArray[np.bool_], said: Sequence[list[str]], written: Sequence[list[str]], metrics: Collection[str]
) -> dict[str, float]:
    """Score each prediction against each reference it is paired with, as a corpus of its own."""
    captions: list[list[str]] = []
    answers: dict[str, list[list[str]]] = {}
    for caption, row in zip(said, pairs, strict=True):
        for reference in [words for words, paired in zip(written, row, strict=True) if paired] or [[_NOBODYS_WORD]]:
            answers[str(len(captions))] = [reference]
            captions.append(caption)
    return score_words(list(answers), captions, answers, metrics).corpus if captions else {}


def _detection(overlaps: Sequence[NDArray[np.float64]], level: float) -> tuple[float, float]:
    """Return precision and recall of the times, each against the annotation that flatters it most (strictly above)."""
    best_precision = best_recall = 0.0
    for overlap in overlaps:
        hit = overlap > level
        if hit.size:
            best_precision = max(best_precision, float(hit.any(1).mean()))
            best_recall = max(best_recall, float(hit.any(0).mean()))
    return best_precision, best_recall


def _words(event: Event) -> list[str]:
    """Cut a sentence into words; the challenge replaces what is not ASCII by blanks first."""
    return scoring_words("".join(letter if letter.isascii() else " " for letter in event.sentence))
