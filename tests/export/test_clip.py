"""A clip with boxes drawn in: they are where they should be at every time, and the clip keeps its clock."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ImageColor

from deixis.errors import BadFileError, DeixisError
from deixis.export.clip import box_at, on_show, playable, write_annotated_clip, write_playable_clip
from deixis.export.draw import PALETTE
from deixis.types import GroundedCaption, GroundedWord
from deixis.video import read_clip, walk_frames

TIMES = (0.5, 1.5, 2.5)
A, B, C = (0.0, 0.0, 40.0, 40.0), (20.0, 0.0, 60.0, 40.0), (300.0, 200.0, 310.0, 210.0)


def grey_clip(path: Path, times: list[float], size: tuple[int, int] = (320, 240), codec: str = "libx264") -> Path:
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        for time in times:
            frame = av.VideoFrame.from_ndarray(np.full((size[1], size[0], 3), 128, np.uint8), format="rgb24")
            frame.pts, frame.time_base = round(1000 * time), Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def caption(segment: tuple[float, float], times: tuple[float, ...], *, trusted: bool = True) -> GroundedCaption:
    boxes = tuple((40.0 + 20 * at, 60.0, 140.0 + 20 * at, 180.0) for at in range(len(times)))
    word = GroundedWord("dog", 2, 5, boxes, tuple(range(len(times))), 0.5, groundable=True, trusted=trusted)
    words = (GroundedWord("A", 0, 1), word, GroundedWord("runs", 6, 10))
    return GroundedCaption("clip.mp4", (320, 240), "A dog runs.", words, segment=segment, frame_times=times)


def test_boxes_between_frames_by_hand() -> None:
    assert box_at((A, B), (0, 1), TIMES, 1.0) == (10.0, 0.0, 50.0, 40.0), "half the way"
    assert box_at((A, B), (0, 1), TIMES, 0.0) == A, "before the first frame"
    assert box_at((A, B, A), (0, 1, 2), TIMES, 9.0) == A, "after the last"
    assert box_at((A, C), (0, 1), TIMES, 0.9) == A, "boxes apart are not slid into each other"
    assert box_at((A, C), (0, 1), TIMES, 1.1) == C
    assert box_at((A, B), (0, 2), TIMES, 0.9) == A, "a frame without the thing lies between"
    assert box_at((A, B), (0, 2), TIMES, 1.1) is None
    assert box_at((A, B), (0, 2), TIMES, 2.1) == B
    assert box_at((), (), TIMES, 1.0) is None
    assert box_at((A, B), (0, 0), TIMES, 0.5) == A, "the first of two boxes on one frame"


@given(st.floats(0, 3))
def test_a_thing_on_every_frame_is_always_shown(time: float) -> None:
    box = box_at((A, B, A), (0, 1, 2), TIMES, time)
    assert box is not None
    assert A[0] <= box[0] <= B[0]


def test_the_segment_on_show() -> None:
    two = [caption((0.0, 2.0), (1.0,)), caption((1.0, 3.0), (2.0,)), caption((5.0, 6.0), (5.5,))]
    assert [on_show(two, time) for time in (0.5, 1.5, 2.5, 4.0, 5.0, 6.0)] == [0, 1, 1, None, 2, None]


def test_the_box_is_drawn_where_it_is_at_that_time(tmp_path: Path) -> None:
    clip = grey_clip(tmp_path / "grey.mp4", [at / 10 for at in range(30)])
    said = caption((0.0, 3.0), TIMES)
    write_annotated_clip(tmp_path / "drawn.mp4", clip, [said])
    blue = np.array(ImageColor.getrgb(PALETTE[0]))
    checked = 0
    for time, pixels in walk_frames(tmp_path / "drawn.mp4"):
        assert pixels.shape[1] == 640, "small clips grow"
        assert pixels.shape[0] > 480, "a sentence stands below"
        assert (pixels[490:] < 100).any()
        picture = pixels[:480].astype(int)
        near = np.abs(picture[200:320] - blue).sum(-1) < 60  # (rows, columns): the box's sides, without its label
        columns = np.flatnonzero(near.mean(0) > 0.8)
        expected = box_at(said.words[1].boxes, said.words[1].frames, TIMES, time)
        assert expected is not None
        assert columns[0] / 2 == pytest.approx(expected[0], abs=2.5)
        assert (columns[-1] + 1) / 2 == pytest.approx(expected[2], abs=2.5)
        checked += 1
    assert checked == 30


def test_doubted_things_and_times_between_segments_have_no_boxes(tmp_path: Path) -> None:
    clip = grey_clip(tmp_path / "grey.mp4", [at / 5 for at in range(10)])
    said = [caption((0.0, 0.5), (0.25,), trusted=False), caption((1.0, 2.0), (1.5,))]
    write_annotated_clip(tmp_path / "drawn.mp4", clip, said)
    for time, pixels in walk_frames(tmp_path / "drawn.mp4"):
        picture = pixels[:480].astype(int)
        assert (np.abs(picture - 128).max() > 40) == (time >= 1.0 - 1e-6)
        assert (pixels[490:] < 100).any() == (time < 0.5 or time >= 1.0 - 1e-6), "the sentence comes and goes with it"


def test_the_clock_of_the_clip_is_kept(tmp_path: Path) -> None:
    times = [0.0, 0.1, 0.9, 1.0, 2.5]
    clip = grey_clip(tmp_path / "vfr.mp4", times, size=(64, 48))
    done: list[float] = []
    write_annotated_clip(tmp_path / "out" / "drawn.mp4", clip, [caption((0.0, 2.5), (1.0,))], progress=done.append)
    assert [time for time, _ in walk_frames(tmp_path / "out" / "drawn.mp4")] == pytest.approx(times, abs=0.002)
    assert done == pytest.approx(times)


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    clip = grey_clip(tmp_path / "grey.mp4", [at / 10 for at in range(30)])
    with pytest.raises(DeixisError, match="no captions"):
        write_annotated_clip(tmp_path / "a.mp4", clip, [])
    with pytest.raises(BadFileError, match="there is no file"):
        write_annotated_clip(tmp_path / "a.mp4", tmp_path / "missing.mp4", [caption((0, 1), (0.5,))])
    with pytest.raises(DeixisError, match="cannot write"):
        write_annotated_clip(clip / "a.mp4", clip, [caption((0, 1), (0.5,))])
    (tmp_path / "folder.mp4").mkdir()
    with pytest.raises(DeixisError, match="cannot write"):
        write_annotated_clip(tmp_path / "folder.mp4", clip, [caption((0, 1), (0.5,))])
    assert {path.name for path in tmp_path.iterdir()} == {"grey.mp4", "folder.mp4"}


def test_what_browsers_cannot_play_is_made_playable(tmp_path: Path) -> None:
    assert playable(grey_clip(tmp_path / "good.mp4", [0.0, 0.1]))
    old = grey_clip(tmp_path / "old.avi", [0.0, 0.1, 0.2], size=(66, 48), codec="mpeg4")
    assert not playable(old)
    made = write_playable_clip(tmp_path / "new.mp4", old)
    assert playable(made)
    assert read_clip(made).size == (66, 48)
    assert len(list(walk_frames(made))) == 3
