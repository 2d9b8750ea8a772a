from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deixis.errors import BadFileError, DeixisError
from deixis.metrics.captions.densecap import Event, score_dense_captions, time_overlap
from deixis.metrics.files.densecap import read_dense_references, read_dense_submission

Events = dict[str, list[Event]]


def test_time_overlap() -> None:
    assert time_overlap(Event(0, 10, ""), Event(5, 15, "")) == pytest.approx(5 / 15)
    assert time_overlap(Event(0, 10, ""), Event(20, 30, "")) == 0
    assert time_overlap(Event(0, 10, ""), Event(0, 10, "")) == pytest.approx(1)


def made_up_videos(coco: dict[str, list[str]]) -> tuple[Events, list[Events]]:
    """Real sentences at random times; two annotations; the second lacks videos, some videos have no predictions."""
    rng = random.Random(5)
    groups = list(coco.values())[:40]
    predictions: Events = {}
    first: Events = {}
    second: Events = {}
    for number in range(8):
        name = f"v_{number}"
        mine = groups[number * 5 : number * 5 + 5]
        times = [(t := rng.uniform(0, 60), t + rng.uniform(5, 40)) for _ in mine]

        def near(time: tuple[float, float]) -> tuple[float, float]:
            start = time[0] + rng.uniform(-6, 6)
            return start, max(start, time[1] + rng.uniform(-6, 6))

        first[name] = [Event(*t, g[0]) for t, g in zip(times, mine, strict=True)]
        if number % 2:
            second[name] = [Event(*near(t), g[1]) for t, g in zip(times, mine, strict=True)]
        if number != 3:
            predictions[name] = [Event(*near(t), g[2]) for t, g in zip(times, mine, strict=True)]
    return predictions, [first, second]


def test_equals_the_protocol_written_out_with_pycocoevalcap(coco: dict[str, list[str]]) -> None:
    pytest.importorskip("pycocoevalcap")
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    from deixis.text.tokens import scoring_words

    predictions, references = made_up_videos(coco)
    got = score_dense_captions(predictions, references)
    names = ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE-L", "CIDEr"]
    expected = []
    for level in (0.3, 0.5, 0.7, 0.9):
        rows = []
        for video in references[0]:
            res: dict[int, list[str]] = {}
            gts: dict[int, list[str]] = {}
            for event in predictions.get(video, []):
                matching = [r.sentence for a in references for r in a.get(video, []) if time_overlap(event, r) >= level]
                for sentence in matching or ["garbagegarbage"]:
                    gts[len(res)] = [" ".join(scoring_words(sentence))]
                    res[len(res)] = [" ".join(scoring_words(event.sentence))]
            if not res:
                rows.append([0.0] * 6)
                continue
            bleu = Bleu(4).compute_score(gts, res, verbose=0)[0]
            rows.append([*bleu, Rouge().compute_score(gts, res)[0], Cider().compute_score(gts, res)[0]])
        expected.append(np.mean(rows, axis=0))
        for name, value in zip(names, expected[-1], strict=True):
            assert got.by_threshold[level][name] == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose([got.corpus[name] for name in names], np.mean(expected, axis=0), rtol=1e-6)
    assert got.by_threshold[0.3]["ROUGE-L"] > got.by_threshold[0.9]["ROUGE-L"] > 0
    assert got.per_video["CIDEr"][got.videos.index("v_3")] == 0


def test_precision_and_recall_of_the_times() -> None:
    references = [{"v": [Event(0, 10, "a"), Event(20, 30, "b")], "w": [Event(0, 1, "c")]}]
    got = score_dense_captions({"v": [Event(0, 10, "a"), Event(0, 9, "a"), Event(50, 60, "d")]}, references)
    assert got.precision[0.3] == pytest.approx((2 / 3 + 0) / 2)
    assert got.recall[0.3] == pytest.approx((1 / 2 + 0) / 2)
    assert got.precision[0.9] == pytest.approx((1 / 3 + 0) / 2)  # 0.9 itself is not above 0.9


def test_given_times_score_alike_at_every_threshold() -> None:
    events = {"v": [Event(0, 10, "a man runs away"), Event(10, 20, "a dog sleeps")]}
    got = score_dense_captions(events, [events])
    assert got.corpus == pytest.approx(got.by_threshold[0.9])
    assert got.corpus["BLEU-1"] == pytest.approx(1)
    assert got.corpus["CIDEr"] == pytest.approx(10 * (4 + 3) / 4 / 2)  # four words have four orders, three have three


def test_one_pair_alone_has_no_cider() -> None:
    # One document: every n-gram occurs in all documents and weighs ln 1 = 0. The protocol's weakness, kept.
    events = {"v": [Event(0, 10, "a man runs")]}
    assert score_dense_captions(events, [events], ("cider",)).corpus == {"CIDEr": 0.0}


def test_only_the_first_events_count() -> None:
    events = {"v": [Event(0, 10, "a man runs"), Event(0, 10, "something else entirely")]}
    got = score_dense_captions(events, [{"v": events["v"][:1]}], ("bleu",), max_events=1)
    assert got.corpus["BLEU-1"] == pytest.approx(1)


def test_wrong_input_is_named() -> None:
    events = {"v": [Event(0, 1, "a")]}
    with pytest.raises(DeixisError, match="video 'x' has predictions but no references"):
        score_dense_captions({"x": [Event(0, 1, "a")]}, [events])
    with pytest.raises(DeixisError, match="no predicted events"):
        score_dense_captions({"v": []}, [events])
    with pytest.raises(DeixisError, match="no reference events"):
        score_dense_captions(events, [])
    with pytest.raises(DeixisError, match="unknown caption metric"):
        score_dense_captions(events, [events], ("nist",))
    with pytest.raises(DeixisError, match=r"thresholds are \[0\]"):
        score_dense_captions(events, [events], thresholds=[0])
    with pytest.raises(DeixisError, match="from 3 to 2"):
        Event(3, 2, "a")
    with pytest.raises(DeixisError, match="from nan"):
        Event(float("nan"), 2, "a")


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_files(tmp_path: Path) -> None:
    submission = {"version": "1", "results": {"v": [{"sentence": "a man", "timestamp": [0, 5.5]}]}, "external_data": {}}
    assert read_dense_submission(written(tmp_path / "s.json", submission)) == {"v": [Event(0, 5.5, "a man")]}
    annotation = {"v": {"duration": 9.0, "timestamps": [[0, 5], [9, 5]], "sentences": ["A man.", "He runs."]}}
    events = read_dense_references(written(tmp_path / "r.json", annotation))
    assert events == {"v": [Event(0, 5, "A man."), Event(5, 9, "He runs.")]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"annotations": []}, "has no object 'results'"),
        ([], "must be a JSON object, is a list"),
        ("{", "cannot be read as JSON"),
        ('{"results": {"v": [], "v": []}}', "'v' occurs twice"),
        ({"results": {"v": [{"sentence": "a"}]}}, "event 0 of video 'v' lacks"),
        ({"results": {"v": [{"sentence": "a", "timestamp": [1]}]}}, r"timestamp \[1\], must be"),
        ({"results": {"v": [{"sentence": "a", "timestamp": [5, 1]}]}}, "from 5.0 to 1.0"),
        (
            '{"results": {"v": [{"sentence": "a", "timestamp": [0, NaN]}]}}',
            "event 0 of video 'v': an event from 0.0 to nan",
        ),
        ({"results": {"v": [{"sentence": None, "timestamp": [0, 1]}]}}, "sentence None, must be text"),
    ],
)
def test_wrong_submissions_are_named(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(BadFileError, match=message):
        read_dense_submission(written(tmp_path / "s.json", content))


def test_wrong_annotations_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="video 'v' has 1 timestamps for 2 sentences"):
        read_dense_references(written(tmp_path / "r.json", {"v": {"timestamps": [[0, 1]], "sentences": ["a", "b"]}}))
    with pytest.raises(BadFileError, match="video 'v' lacks 'timestamps'"):
        read_dense_references(written(tmp_path / "r.json", {"v": []}))
