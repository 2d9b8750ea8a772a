"""Phrase grounding under both protocols, worked by hand and against a slow implementation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.errors import DeixisError
from deixis.metrics.grounding.phrases import ANY_BOX, MERGED_BOX, PhraseCase, Protocol, score_phrases
from deixis.types import Box

A: Box = (0, 0, 9, 9)
B: Box = (20, 0, 29, 9)
BOTH: Box = (0, 0, 29, 9)
FAR: Box = (80, 80, 90, 90)


def case(*ranked: Box, boxes: tuple[Box, ...] = (A,), image: str = "1", types: tuple[str, ...] = ()) -> PhraseCase:
    return PhraseCase(image, "a thing", boxes, ranked, types)


def test_the_protocols_disagree_on_a_phrase_with_two_boxes() -> None:
    one = [case(A, boxes=(A, B))]
    assert score_phrases(one, ANY_BOX).scores["R@1"] == 1  # A is one of its boxes
    assert score_phrases(one, MERGED_BOX).scores["R@1"] == 0  # 9 x 9 of 29 x 9: 0.31
    around = [case(BOTH, boxes=(A, B))]
    assert score_phrases(around, ANY_BOX).scores["R@1"] == 0  # 100 of 300 pixels
    assert score_phrases(around, MERGED_BOX).scores["R@1"] == 1
    # the centre of the merged box lies between the two things
    assert score_phrases(around, ANY_BOX).scores["pointing"] == 0
    assert score_phrases(around, MERGED_BOX).scores["pointing"] == 1


def test_only_any_box_counts_the_last_pixel() -> None:
    # 10 x 10 against 10 x 5 pixels is one half with the last pixel; 9 x 4 of 81 is 0.44 without
    half = [case((0, 0, 9, 4))]
    assert score_phrases(half, ANY_BOX).scores["R@1"] == 1  # one half is enough for phrases
    assert score_phrases(half, MERGED_BOX).scores["R@1"] == 0
    assert score_phrases([case((0, 0, 8, 4), boxes=((0, 0, 8, 8),))], MERGED_BOX).scores["R@1"] == 1  # 32 of 64


def test_a_centre_on_the_border_is_inside_only_for_merged_box() -> None:
    on_the_edge = [case((5, 0, 13, 8))]  # centre (9, 4), the box ends at x = 9
    assert score_phrases(on_the_edge, ANY_BOX).scores["pointing"] == 0
    assert score_phrases(on_the_edge, MERGED_BOX).scores["pointing"] == 1


def test_recall_at_depth_and_thresholds() -> None:
    cases = [
        case(A),
        case(FAR, FAR, A),  # third
        case(*[FAR] * 7, A),  # eighth
        case(*[FAR] * 10, A),  # eleventh: too late
        case((0, 0, 9, 6)),  # 0.7
        case(),  # nothing predicted
    ]
    scores = score_phrases(cases, ANY_BOX).scores
    assert scores["R@1"] == pytest.approx(2 / 6)
    assert scores["R@5"] == pytest.approx(3 / 6)
    assert scores["R@10"] == pytest.approx(4 / 6)
    assert [scores[f"acc@{t}"] for t in (0.5, 0.6, 0.7, 0.8, 0.9)] == pytest.approx([x / 6 for x in (2, 2, 2, 1, 1)])
    assert scores["mean_IoU"] == pytest.approx((1 + 0.7) / 6)
    assert scores["pointing"] == pytest.approx(2 / 6)


def test_phrases_without_boxes_are_dropped_and_counted() -> None:
    result = score_phrases([case(A), case(A, boxes=())], ANY_BOX)
    assert (result.count, result.dropped, result.scores["R@1"]) == (1, 1, 1.0)
    with pytest.raises(DeixisError, match="none of the 1 phrases"):
        score_phrases([case(A, boxes=())], ANY_BOX)


def test_bound_by_proposals() -> None:
    cases = [case(FAR, image="1"), case(FAR, image="2", boxes=(A, B))]
    proposals = {"1": [FAR, A], "2": [FAR, BOTH]}
    assert score_phrases(cases, ANY_BOX, proposals).scores["bound"] == 0.5
    assert score_phrases(cases, MERGED_BOX, proposals).scores["bound"] == 1
    with pytest.raises(DeixisError, match="'2'"):
        score_phrases(cases, ANY_BOX, {"1": [A]})


def test_breakdowns() -> None:
    cases = [
        case(A, types=("people",)),
        case(FAR, types=("people", "clothing")),
        case(A, types=("clothing",), boxes=(A, B)),
    ]
    result = score_phrases(cases, ANY_BOX)
    by = {kind: {g.name: (g.count, g.scores["R@1"]) for g in groups} for kind, groups in result.breakdowns.items()}
    assert by["type"] == {"people": (1, 1.0), "people/clothing": (1, 0.0), "clothing": (1, 1.0)}
    assert by["class"] == {"people": (2, 0.5), "clothing": (2, 0.5)}
    assert by["boxes"] == {"one": (2, 0.5), "several": (1, 1.0)}


def slow_hit(box: Box, truth: tuple[Box, ...], protocol: Protocol) -> bool:
    if protocol.merged:
        truth = (
            (min(b[0] for b in truth), min(b[1] for b in truth), max(b[2] for b in truth), max(b[3] for b in truth)),
        )
    extra = 1 if protocol.plus_one else 0
    for other in truth:
        width = max(0, min(box[2], other[2]) - max(box[0], other[0]) + extra)
        height = max(0, min(box[3], other[3]) - max(box[1], other[1]) + extra)
        area = [(b[2] - b[0] + extra) * (b[3] - b[1] + extra) for b in (box, other)]
        union = sum(area) - width * height
        if union > 0 and 2 * width * height >= union:  # whole numbers: no rounding
            return True
    return False


whole = st.integers(0, 12)
box_strategy = st.builds(lambda x, y, w, h: (x, y, x + w, y + h), whole, whole, whole, whole)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(box_strategy, min_size=1, max_size=3), st.lists(box_strategy, max_size=12)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([ANY_BOX, MERGED_BOX]),
)
def test_recalls_equal_a_slow_implementation(data: list[tuple[list[Box], list[Box]]], protocol: Protocol) -> None:
    cases = [case(*ranked, boxes=tuple(truth), image=str(at)) for at, (truth, ranked) in enumerate(data)]
    scores = score_phrases(cases, protocol).scores
    for depth in (1, 5, 10):
        hits = [any(slow_hit(box, c.boxes, protocol) for box in c.ranked[:depth]) for c in cases]
        assert scores[f"R@{depth}"] == pytest.approx(sum(hits) / len(hits))
