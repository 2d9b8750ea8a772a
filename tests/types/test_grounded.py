from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.errors import BadFileError
from deixis.types import Box, GroundedCaption, GroundedPhrase, GroundedPhrases, GroundedWord

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "grounded.schema.json").read_text())

number = st.floats(-1e6, 1e6, allow_nan=False)
box: st.SearchStrategy[Box] = st.builds(
    lambda x, y, w, h: (float(x), float(y), float(x + w), float(y + h)),
    *[st.integers(0, 999) for _ in range(4)],
)
size = st.tuples(st.integers(1, 9999), st.integers(1, 9999))


@st.composite
def words(draw: st.DrawFn, text: str) -> GroundedWord:
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, len(text)))
    boxes = tuple(draw(st.lists(box, max_size=3)))
    frames = tuple(draw(st.integers(0, 9)) for _ in boxes)
    flags = draw(st.tuples(st.booleans(), st.booleans()))
    presence = draw(st.none() | st.floats(0, 1))
    return GroundedWord(text[start:end], start, end, boxes, frames, draw(number), *flags, presence)


@st.composite
def captions(draw: st.DrawFn) -> GroundedCaption:
    text = draw(st.text(max_size=40))
    clip = draw(st.booleans())
    return GroundedCaption(
        image=draw(st.text(max_size=9)),
        size=draw(size),
        text=text,
        words=tuple(draw(st.lists(words(text), max_size=4))),
        score=draw(number),
        model=draw(st.text(max_size=5)),
        segment=(0.5, 2.5) if clip else None,
        frame_times=(0.75, 1.5) if clip else (),
    )


@st.composite
def phrase_sets(draw: st.DrawFn) -> GroundedPhrases:
    sentence = draw(st.none() | st.text(max_size=40))
    phrases = []
    for _ in range(draw(st.integers(0, 3))):
        boxes = tuple(draw(st.lists(box, max_size=2)))
        ranked = tuple(draw(st.lists(box, max_size=3)))
        span: dict[str, int] = {}
        if sentence is not None:
            start = draw(st.integers(0, len(sentence)))
            span = {"start": start, "end": draw(st.integers(start, len(sentence)))}
        phrases.append(
            GroundedPhrase(
                text=draw(st.text(max_size=9)),
                boxes=boxes,
                frames=(0,) * len(boxes),
                score=draw(number),
                found=draw(st.booleans()),
                ranked=ranked,
                ranked_scores=tuple(draw(number) for _ in ranked),
                label=draw(st.none() | st.text(max_size=9)),
                start=span.get("start"),
                end=span.get("end"),
            )
        )
    return GroundedPhrases(draw(st.text(max_size=9)), draw(size), tuple(phrases), sentence, "lite")


@given(captions())
def test_captions_survive_json_and_fit_the_schema(caption: GroundedCaption) -> None:
    data = json.loads(json.dumps(caption.to_json()))
    jsonschema.validate(data, SCHEMA)
    assert GroundedCaption.from_json(data) == caption


@given(phrase_sets())
def test_phrases_survive_json_and_fit_the_schema(phrases: GroundedPhrases) -> None:
    data = json.loads(json.dumps(phrases.to_json()))
    jsonschema.validate(data, SCHEMA)
    assert GroundedPhrases.from_json(data) == phrases


GOOD: dict[str, Any] = GroundedCaption(
    "a.jpg", (10, 10), "a dog", (GroundedWord("dog", 2, 5, ((0, 0, 5, 5),), (0,)),)
).to_json()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"deixis": 2}, "newer version"),
        ({"kind": "phrases"}, "'phrases'"),
        ({"size": [0, 10]}, r"\[0, 10\]"),
        ({"text": 7}, "7"),
        ({"score": float("nan")}, "nan"),
        ({"words": "dog"}, "words"),
        ({"words": [{"text": "dog", "start": 2, "end": 9}]}, "2 to 9"),
        ({"words": [{"text": "dog", "start": 2, "end": 5, "boxes": [[5, 5, 1, 1]]}]}, "x1 <= x2"),
        ({"words": [{"text": "dog", "start": 2, "end": 5, "boxes": [[1, 2, 3]]}]}, r"\[1, 2, 3\]"),
        ({"words": [{"text": "dog", "start": 2, "end": 5, "boxes": [[0, 0, 1, 1]], "frames": [0, 1]}]}, "2 frames"),
    ],
)
def test_a_malformed_file_is_refused_with_the_value(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BadFileError, match=says):
        GroundedCaption.from_json(GOOD | change)
