"""What plots need: bins of classes and curves over IoU, worked by hand and against the metrics they must agree with."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.flickr8k.facts import THRESHOLDS, class_frequency, f1_by_bin, iou_curve
from deixis.metrics.grounding.f1 import ClassScore, score_grounding
from deixis.metrics.grounding.object_words import GroundedItem, PredictedWord, ReferenceSentence
from deixis.metrics.grounding.phrases import ANY_BOX, PhraseCase, score_phrases
from deixis.types import Box

DOGS = "[/EN#1/animals Two brown dogs] stand near [/EN#2/people a man] on [/EN#0/notvisual the stand] ."
TRUTH: Box = (0, 0, 9, 9)  # ten pixels wide, as any-box counts


def case(ranked: tuple[Box, ...], boxes: tuple[Box, ...] = (TRUTH,), image: str = "a") -> PhraseCase:
    return PhraseCase(image, "a phrase", boxes, ranked)


# IoU with TRUTH: 1, .5 (half of it), .25 (a quarter), 0 (nothing predicted)
CASES = (
    case((TRUTH, (0, 0, 1, 1))),
    case(((0, 0, 4, 9), TRUTH)),
    case(((0, 0, 4, 4),), (TRUTH, (50, 50, 90, 90))),
    case(()),
    case((TRUTH,), ()),  # nobody drew a box: not counted
)


def test_the_curve_is_the_share_of_phrases_at_or_above_each_threshold() -> None:
    curve = dict(zip(THRESHOLDS, iou_curve(CASES), strict=True))
    assert THRESHOLDS == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    assert [curve[at] for at in (0.1, 0.2)] == [0.75, 0.75]
    assert [curve[at] for at in (0.3, 0.4, 0.5)] == [0.5, 0.5, 0.5]
    assert [curve[at] for at in (0.6, 0.7, 0.8, 0.9)] == [0.25] * 4


def test_the_curve_meets_the_metrics_where_they_have_the_same_threshold() -> None:
    curve, scores = dict(zip(THRESHOLDS, iou_curve(CASES), strict=True)), score_phrases(CASES, ANY_BOX).scores
    assert curve[0.5] == pytest.approx(scores["R@1"])
    assert [curve[at] for at in (0.6, 0.9)] == pytest.approx([scores["acc@0.6"], scores["acc@0.9"]])


def test_the_best_region_is_a_bound_and_agrees_with_the_metrics_bound() -> None:
    offered: dict[str, tuple[Box, ...]] = {"a": ((0, 0, 1, 1), (0, 0, 9, 7))}  # the second overlaps by .8
    bound = dict(zip(THRESHOLDS, iou_curve(CASES, offered), strict=True))
    assert [bound[at] for at in (0.5, 0.8, 0.9)] == [1.0, 1.0, 0.0]
    assert bound[0.5] == score_phrases(CASES, ANY_BOX, offered).scores["bound"]


def scores_of(*rows: tuple[str, float, float]) -> tuple[ClassScore, ...]:
    return tuple(ClassScore(label, precision, 4, recall, 10) for label, precision, recall in rows)


def test_bins_hold_classes_by_frequency_and_average_before_the_harmonic_mean() -> None:
    classes = {
        "all": scores_of(("dog", 0.5, 0.5), ("man", 0.25, 0.75), ("yak", 0.0, 0.0)),
        "loc": scores_of(("dog", 1.0, 0.5), ("man", 1.0, 0.5), ("yak", 0.0, 0.0)),
    }
    bins = f1_by_bin(classes, {"dog": 1000, "man": 5000, "cat": 40}, (1000, 30, 0))
    # dog and man: precision .375, recall .625 -> 2 x .375 x .625 / 1 = .46875, not the mean of .5 and .375;
    # no class lies between 30 and 999; a yak was never named in training
    assert bins == [
        {"at least": 1000, "classes": 2, "words": 20, "F1_all": 0.46875, "F1_loc": pytest.approx(2 / 3, abs=1e-5)},
        {"at least": 30, "classes": 0, "words": 0, "F1_all": None, "F1_loc": None},
        {"at least": 0, "classes": 1, "words": 10, "F1_all": 0.0, "F1_loc": 0.0},
    ]


def test_one_bin_over_all_classes_is_the_f1_of_the_table() -> None:
    boxes: dict[str, Box] = {"dog": (0, 0, 9, 9), "ball": (20, 20, 29, 29), "man": (40, 0, 60, 90)}
    references = ReferenceSentence.of([(at, name, box, 0) for at, (name, box) in enumerate(boxes.items())], set())
    said = [("dog", boxes["dog"]), ("ball", boxes["dog"]), ("tree", boxes["man"])]
    predicted = tuple(PredictedWord(name, name, (box,), (0,), at) for at, (name, box) in enumerate(said))
    found = score_grounding([GroundedItem("a", (references,), predicted)], photos=True)
    (only,) = f1_by_bin(found.classes, {}, (0,))
    assert only["classes"] == 3
    assert only["F1_all"] == pytest.approx(found.scores["F1_all"], abs=1e-5)
    assert only["F1_loc"] == pytest.approx(found.scores["F1_loc"], abs=1e-5)
    assert only["F1_all"] == pytest.approx(1 / 3, abs=1e-5)  # of three classes, the dog alone is right


def test_classes_are_counted_by_the_phrases_of_training_captions(tmp_path: Path) -> None:
    for folder in ("Annotations", "Sentences"):
        (tmp_path / folder).mkdir()
    for name, sentence in {"1": f"{DOGS}\n{DOGS}\n[/EN#2/people The man] .", "2": "[/EN#1/people A man] ."}.items():
        (tmp_path / "Sentences" / f"{name}.txt").write_text(f"{sentence}\n")
    (tmp_path / "train.txt").write_text("1\n")
    (tmp_path / "val.txt").write_text("2\n")
    listed = tmp_path / "classes.txt"
    listed.write_text("dog\nman\nstand\nyak\n")
    # the stand is not to be seen, the verb is no phrase, the yak is in no caption, the second photo is not trained on
    assert class_frequency(tmp_path, None, listed) == {"dog": 2, "man": 3}
