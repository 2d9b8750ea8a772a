"""Phrases in clips: each frame says what a photo of it would say, and boxes belong to frames."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import jsonschema
import numpy as np
import pytest
from PIL import Image

import deixis
from deixis.answering.clip_phrases import ground_clip
from deixis.answering.load import Deixis
from deixis.errors import BadFileError, DeixisError
from deixis.types import GroundedPhrases
from deixis.video import sample_frames

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "grounded.schema.json").read_text())


@pytest.fixture(scope="module")
def model(small_bundle: Path) -> Deixis:
    return deixis.load(small_bundle)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of a cup, then two of a cat."""
    path = tmp_path_factory.mktemp("clips") / "two.mp4"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=5)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for at in range(20):
            name = "coffee" if at < 10 else "chelsea"
            photo = Image.open(ROOT / "examples" / "photos" / f"{name}.jpg").convert("RGB").resize((320, 240))
            frame = av.VideoFrame.from_ndarray(np.asarray(photo), format="rgb24")
            frame.pts, frame.time_base = at, Fraction(1, 5)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def test_one_frame_says_what_the_photo_says(model: Deixis, clip: Path) -> None:
    (answer,) = ground_clip(model, clip, ["a cup", "a zyzzyva"], segments=[(0.0, 2.0)], frames=1, name="two.mp4")
    pictures, times = sample_frames(clip, 0.0, 2.0, 1)
    alone = model.ground(pictures[0], ["a cup", "a zyzzyva"])
    assert answer.frame_times == times
    for here, there in zip(answer.phrases, alone.phrases, strict=True):
        assert (here.text, here.found, here.score) == (there.text, there.found, there.score)
        assert here.boxes == (there.boxes if there.found else ())
    assert not answer.phrases[1].found, "no model knows that word"


def test_segments_have_boxes_on_their_frames_in_the_documented_form(model: Deixis, clip: Path) -> None:
    answers = ground_clip(model, clip, ["a cup"], every=2.0, frames=3, name="two.mp4")
    assert [answer.segment for answer in answers] == [(0.0, 2.0), (2.0, 4.0)]
    assert any(answer.phrases[0].found for answer in answers)
    for answer in answers:
        (phrase,) = answer.phrases
        assert phrase.found == bool(phrase.boxes)
        assert len(set(phrase.frames)) == len(phrase.frames) == len(phrase.boxes)
        assert all(0 <= frame < len(answer.frame_times) for frame in phrase.frames)
        data = json.loads(json.dumps(answer.to_json()))
        jsonschema.validate(data, SCHEMA)
        assert GroundedPhrases.from_json(data) == answer


def test_a_frame_without_the_thing_has_no_box(model: Deixis, clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., GroundedPhrases] = model.ground
    asked: list[int] = []

    def sometimes(*given: Any, **options: Any) -> GroundedPhrases:
        answer = real(*given, **options)
        asked.append(0)
        return replace(answer, phrases=tuple(replace(one, found=len(asked) != 2) for one in answer.phrases))

    monkeypatch.setattr(model, "ground", sometimes)
    (answer,) = ground_clip(model, clip, ["a cup"], segments=[(0.0, 2.0)], frames=3)
    assert answer.phrases[0].frames == (0, 2)


def test_what_cannot_be_is_refused(model: Deixis, clip: Path, tmp_path: Path) -> None:
    with pytest.raises(DeixisError, match="nothing to look for"):
        ground_clip(model, clip, [])
    with pytest.raises(DeixisError, match="frames"):
        ground_clip(model, clip, ["a cup"], frames=0)
    with pytest.raises(BadFileError, match=r"none\.mp4"):
        ground_clip(model, tmp_path / "none.mp4", ["a cup"])
