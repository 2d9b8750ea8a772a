"""Shots: cuts are found where pictures change at once, and not where things move, light flickers or a shot fades."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from deixis.answering.segments import MOST, SHORTEST, choose_segments, shots
from deixis.answering.shots import cuts_of, find_cuts

Picture = NDArray[np.uint8]


def scene(seed: int, side: int = 32) -> Picture:
    """A smooth random picture in a few colours of its own."""
    draw = np.random.default_rng(seed)
    small = draw.integers(0, 255, (4, 4, 3))
    return np.asarray(np.kron(small, np.ones((side // 4, side // 4, 1))), dtype=np.uint8)


def timed(frames: list[Picture]) -> Iterator[tuple[float, Picture]]:
    return ((at / 10, frame) for at, frame in enumerate(frames))


def test_a_cut_is_where_the_picture_changes() -> None:
    frames = [scene(1)] * 12 + [scene(2)] * 20 + [scene(3)] * 8
    assert cuts_of(timed(frames)) == [1.2, 3.2]


def test_moving_and_flickering_are_no_cuts() -> None:
    moving = [np.roll(scene(1), at * 2, axis=1) for at in range(40)]
    assert cuts_of(timed(moving)) == []
    flickering = [scene(1) if at % 2 else scene(2) for at in range(40)]
    assert cuts_of(timed(flickering)) == []


def test_a_slow_fade_is_no_cut() -> None:
    one, other = scene(1).astype(float), scene(2).astype(float)
    fade = [np.asarray(one + (other - one) * share, dtype=np.uint8) for share in np.linspace(0, 1, 40)]
    assert cuts_of(timed(fade)) == []


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_frames_for_a_cut(count: int) -> None:
    assert cuts_of(timed([scene(1)] * count)) == []


def test_cuts_of_a_real_file(tmp_path: Path) -> None:
    path = tmp_path / "three.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 64
        for at in range(45):
            picture = np.roll(scene(1 + at // 15, 64), at, axis=0)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    assert find_cuts(path) == pytest.approx([1.5, 3.0], abs=0.06)


def test_segments_end_at_cuts() -> None:
    assert choose_segments(30.0, cuts=[8.0, 25.0]) == [
        (0.0, 8.0),
        (8.0, 13.0),
        (13.0, 18.0),
        (18.0, 25.0),
        (25.0, 30.0),
    ]
    assert choose_segments(9.0, cuts=[4.0]) == [(0.0, 4.0), (4.0, 9.0)]
    assert choose_segments(9.0, [(3.0, 6.0)], cuts=[4.0]) == [(3.0, 6.0)]  # what people ask for is not cut


@given(
    duration=st.floats(0.2, 500),
    cuts=st.lists(st.floats(0, 500), max_size=12),
    every=st.none() | st.floats(0.5, 60),
)
def test_segments_cover_the_clip_and_cross_no_shot(duration: float, cuts: list[float], every: float | None) -> None:
    inside = [cut for cut in cuts if cut < duration]
    found = choose_segments(duration, every=every, cuts=inside)
    assert found[0][0] == 0
    assert found[-1][1] == duration
    assert all(one[1] == pytest.approx(other[0]) for one, other in pairwise(found))
    whole = shots(duration, inside)
    assert all(end - start >= SHORTEST for start, end in whole[:-1])
    edges = {start for start, _ in whole}
    assert edges <= {start for start, _ in found}
    assert len(found) <= MOST
