"""Grounding F1 once more, slowly, straight from raw JSON and the written rules: the fast one must agree with it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.errors import DeixisError
from deixis.metrics.files.grounding import read_reference, read_submission
from deixis.metrics.files.json_lines import read_json_file
from deixis.metrics.grounding.attention_accuracy import score_attention
from deixis.metrics.grounding.f1 import score_grounding
from deixis.metrics.grounding.lemmas import table_lemmas
from deixis.metrics.grounding.pairs import GroundingTask, pair, submission_json

LEMMAS = {"men": "man", "Men": "man", "dogs": "dog", "Hats": "hat", "hats": "hat"}
CLASSES = ["man", "dog", "hat", "ball"]


def overlap(a: list[float], b: list[float]) -> float:
    if (a[0] == a[2] and a[1] == a[3]) or (b[0] == b[2] and b[1] == b[3]):
        return 0.0
    width = min(a[2], b[2]) - max(a[0], b[0]) + 1
    height = min(a[3], b[3]) - max(a[1], b[1]) + 1
    if width <= 0 or height <= 0:
        return 0.0
    area = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (a, b)]
    return width * height / (sum(area) - width * height)


def words_of(note: dict[str, Any], clips: bool) -> dict[int, dict[str, Any]]:
    """Word index -> class of its first box, all classes, and its (box, frame) pairs."""
    words: dict[int, dict[str, Any]] = {}
    for at, (box, index, label) in enumerate(
        zip(note["process_bnd_box"], note["process_idx"], note["process_clss"], strict=True)
    ):
        pairs = zip(index, label, strict=True) if clips else [(index, label)]
        for i, name in pairs:
            word = words.setdefault(i, {"label": name, "labels": [], "boxes": []})
            word["labels"].append(name)
            word["boxes"].append((box, note["frame_ind"][at] if clips else 0))
    return words


def right(predicted: list[Any], word: dict[str, Any], clips: bool) -> int:
    frames = predicted if clips else [predicted]
    return int(any(overlap(frames[frame], box) > 0.5 for box, frame in word["boxes"]))


def judge(
    note_words: dict[int, dict[str, Any]],
    other: set[str],
    answer: dict[str, Any] | None,
    clips: bool,
    mode: str,
    lemma: dict[str, str],
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Return (class, hit) entries of precision and recall for one sentence and one reference."""
    precision, recall = [], []
    boxes = answer["bbox_for_all_frames" if clips else "bbox"] if answer else []
    labels = answer["clss"] if answer else []
    for label, box in zip(labels, boxes, strict=True):
        indices = [index for index, word in note_words.items() if label in word["labels"]]
        if indices:
            precision.append((label, right(box, note_words[min(indices)], clips)))
        elif lemma.get(label, label) in other:
            continue
        elif mode == "all":
            precision.append((label, 0))
    for word in note_words.values():
        if answer is None:
            recall.append((word["label"], 0))
        elif word["label"] in labels:
            recall.append((word["label"], right(boxes[labels.index(word["label"])], word, clips)))
        elif mode == "all":
            recall.append((word["label"], 0))
    return precision, recall


def class_macro(entries: list[tuple[str, int]], classes: set[str]) -> float:
    by_class: dict[str, list[int]] = {}
    for label, hit in entries:
        by_class.setdefault(label, []).append(hit)
    return sum(sum(hits) / len(hits) for hits in by_class.values()) / len(classes)


def f1(p: float, r: float) -> float:
    return 2 * p * r / (p + r) if p + r else 0.0


def sentences_of(reference: dict[str, Any]) -> list[tuple[tuple[str, ...], list[dict[str, Any]]]]:
    notes = reference["annotations"]
    if isinstance(notes, dict):
        return [((video, seg), [s]) for video, v in notes.items() for seg, s in v["segments"].items()]
    return [((str(image["image_id"]),), image["captions"]) for image in notes]


def slow_scores(reference: dict[str, Any], submission: dict[str, Any], lemma: dict[str, str]) -> dict[str, float]:
    clips = isinstance(reference["annotations"], dict)
    results = submission["results"]
    scores: dict[str, float] = {}
    for mode in ("all", "loc"):
        all_precision, all_recall = [], []
        classes: set[str] = set()
        sentence_scores: list[tuple[float, float, float]] = []
        skipped = 0
        for item, notes in sentences_of(reference):
            if clips:
                answer = results.get(item[0], {}).get(item[1])
                if not notes[0]["frame_ind"]:
                    continue
            else:
                answer = results[item[0]][0] if item[0] in results else None
            pooled: dict[int, dict[str, Any]] = {}
            pooled_other: set[str] = set()
            number: dict[str, int] = {}
            for note in notes:
                words = words_of(note, clips)
                other = {
                    lemma.get(token, token.lower())
                    for at, token in enumerate(note["tokens"])
                    if at not in words and token
                }
                p, r = judge(words, other, answer, clips, mode, lemma)
                all_precision += p
                all_recall += r
                if answer is not None:
                    classes |= {label for word in words.values() for label in word["labels"]}
                pooled_other |= other
                for index, word in words.items():
                    key = index if clips else number.setdefault(word["label"], len(number))
                    entry = pooled.setdefault(key, {"label": word["label"], "labels": [], "boxes": []})
                    entry["labels"] += word["labels"]
                    entry["boxes"] += word["boxes"]
            if answer is None:
                continue
            p, r = judge(pooled, pooled_other, answer, clips, mode, lemma)
            if not r:
                skipped += 1
                continue
            mean_p = sum(hit for _, hit in p) / len(p) if p else 0.0
            mean_r = sum(hit for _, hit in r) / len(r)
            sentence_scores.append((mean_p, mean_r, f1(mean_p, mean_r)))
        macro_p, macro_r = class_macro(all_precision, classes), class_macro(all_recall, classes)
        scores |= {f"precision_{mode}": macro_p, f"recall_{mode}": macro_r, f"F1_{mode}": f1(macro_p, macro_r)}
        submitted = sum(len(answer) if clips else 1 for answer in results.values())
        for at, part in enumerate(("precision", "recall", "F1")):
            total = sum(score[at] for score in sentence_scores)
            left = submitted - skipped
            scores[f"{part}_{mode}_per_sent"] = total / left if left else 0.0
    return scores


def slow_attention(reference: dict[str, Any], submission: dict[str, Any]) -> float:
    """Attention accuracy on ground-truth sentences, from raw JSON."""
    clips = isinstance(reference["annotations"], dict)
    entries: list[tuple[str, int]] = []
    for item, notes in sentences_of(reference):
        for number, note in enumerate(notes):
            if clips and not note["frame_ind"]:
                continue
            answer = submission["results"].get(item[0], {} if clips else None)
            if clips:
                answer = answer.get(item[1])
            elif answer is not None:
                answer = answer[number]
            for index, word in words_of(note, clips).items():
                if answer is None or index not in answer["idx_in_sent"]:
                    entries.append((word["label"], 0))
                    continue
                boxes = answer["bbox_for_all_frames" if clips else "bbox"]
                entries.append((word["label"], right(boxes[answer["idx_in_sent"].index(index)], word, clips)))
    return class_macro(entries, {label for label, _ in entries})


def task_of(reference: dict[str, Any], submission: dict[str, Any], mode: Any = "gen") -> GroundingTask:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "reference.json", Path(folder) / "submission.json"]
        for path, data in zip(paths, (reference, submission), strict=True):
            path.write_text(json.dumps(data))
        files = [read_json_file(path) for path in paths]
    lemma = table_lemmas(LEMMAS)
    return pair(read_submission(files[1], lemma), read_reference(files[0], lemma), files[1], mode)


# Few corners, so that boxes meet, miss, touch, and reach an IoU of exactly one half.
corners = st.sampled_from([0, 0, 1, 3, 4, 9, 19])


@st.composite
def boxes(draw: st.DrawFn) -> list[float]:
    x, y = draw(corners), draw(corners)
    return [x, y, x + draw(corners), y + draw(corners)]


TOKENS = st.lists(
    st.sampled_from(["Men", "man", "dogs", "dog", "hats", "ball", "a", "runs", ""]), min_size=3, max_size=6
)


@st.composite
def clip_sentences(draw: st.DrawFn) -> dict[str, Any]:
    tokens = draw(TOKENS)
    count = draw(st.integers(0, 4))
    indices = st.integers(0, len(tokens) - 1)
    pairs = [draw(st.lists(st.tuples(indices, st.sampled_from(CLASSES)), min_size=1, max_size=2)) for _ in range(count)]
    return {
        "tokens": tokens,
        "process_idx": [[index for index, _ in entry] for entry in pairs],
        "process_clss": [[label for _, label in entry] for entry in pairs],
        "process_bnd_box": [draw(boxes()) for _ in pairs],
        "frame_ind": [draw(st.integers(0, 2)) for _ in pairs],
    }


@st.composite
def photo_sentences(draw: st.DrawFn) -> dict[str, Any]:
    tokens = draw(TOKENS)
    indices = draw(st.lists(st.integers(0, len(tokens) - 1), unique=True, max_size=4))
    return {
        "tokens": tokens,
        "process_idx": indices,
        "process_clss": [draw(st.sampled_from(CLASSES)) for _ in indices],
        "process_bnd_box": [draw(boxes()) for _ in indices],
    }


@st.composite
def answers(draw: st.DrawFn, clips: bool) -> dict[str, Any]:
    count = draw(st.integers(0, 4))
    found = [[draw(boxes()) for _ in range(3)] + [[0, 0, 0, 0]] * 7 if clips else draw(boxes()) for _ in range(count)]
    return {
        "clss": [draw(st.sampled_from([*CLASSES, "kite"])) for _ in range(count)],
        "idx_in_sent": [draw(st.integers(0, 5)) for _ in range(count)],
        "bbox_for_all_frames" if clips else "bbox": found,
    }


@st.composite
def clip_cases(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    notes: dict[str, Any] = {}
    results: dict[str, Any] = {}
    for video in range(draw(st.integers(1, 3))):
        segments = {str(at): draw(clip_sentences()) for at in range(draw(st.integers(1, 2)))}
        notes[f"v_{video}"] = {"duration": 9.0, "segments": segments}
        for segment in segments:
            if draw(st.integers(0, 3)):  # some segments are left out
                results.setdefault(f"v_{video}", {})[segment] = draw(answers(True))
    return {"vocab": CLASSES, "annotations": notes}, {"results": results or {"v_0": {"0": draw(answers(True))}}}


@st.composite
def photo_cases(draw: st.DrawFn, truth: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    notes, results = [], {}
    captions = draw(st.integers(1, 3))
    for image in range(draw(st.integers(1, 3))):
        notes.append({"image_id": image, "captions": [draw(photo_sentences()) for _ in range(captions)]})
        if image == 0 or draw(st.integers(0, 3)):
            results[str(image)] = [draw(answers(False)) for _ in range(captions if truth else 1)]
    return {"annotations": notes}, {"results": results}


def check(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    task = task_of(*case)
    try:
        photos = isinstance(case[0]["annotations"], list)
        fast = score_grounding(task.items, photos=photos).scores
    except DeixisError:
        with pytest.raises(ZeroDivisionError):  # nothing annotated was submitted: the formula has no value
            slow_scores(*case, LEMMAS)
        return
    assert fast == pytest.approx(slow_scores(*case, LEMMAS), abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(clip_cases())
def test_clips_equal_the_slow_implementation(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    check(case)


@settings(max_examples=150, deadline=None)
@given(photo_cases())
def test_photos_equal_the_slow_implementation(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    check(case)


@settings(max_examples=100, deadline=None)
@given(st.one_of(clip_cases(), photo_cases(truth=True)))
def test_attention_on_references_equals_the_slow_implementation(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    task = task_of(*case, mode="GT")
    if not any(sentence.reference.words for sentence in task.sentences):
        with pytest.raises(DeixisError, match="no annotated object word"):
            score_attention(task.sentences)
        return
    assert score_attention(task.sentences).accuracy == pytest.approx(slow_attention(*case), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.one_of(clip_cases(), photo_cases()))
def test_a_written_submission_is_read_back_as_it_was(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    clips = isinstance(case[0]["annotations"], dict)
    items = task_of(*case).items
    again = task_of(case[0], submission_json(items, clips=clips, regions="ours"), mode=None).items
    assert again == items
