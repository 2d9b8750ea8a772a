"""Safe reading of clips through PyAV: what a file holds, and frames sampled uniformly by timestamp.

Times are seconds from the first frame that is shown. Frames come upright, whatever the rotation in the file, and are
chosen by when they are shown, so a variable frame rate needs no care.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from deixis.errors import BadFileError, DeixisError
from deixis.images import MAX_PIXELS

Frame = NDArray[np.uint8]  # (H, W, 3), RGB

MAX_DECODED = 200_000
"""Frames decoded in one call at most: two hours at 25 a second."""
WORTH_A_LEAP = 3.0
"""Seconds to the next wanted frame above which looking for a key frame closer to it may save decoding."""
OPENING = 60.0
"""Seconds that opening a clip, or one read from it, may take."""
MAX_FRAME_BYTES = 4 * 2**30
"""Memory that the sampled frames may take together."""
CLIP_SUFFIXES = (".mp4", ".mkv", ".webm", ".mov", ".avi", ".m4v")

# Playlists and other files that only point elsewhere are not clips: without this list a text file named clip.mp4 could
# make the decoder open whatever it names.
_CONTAINERS = "mov,mp4,matroska,webm,avi,flv,ogg,mpeg,mpegts,mpegvideo,h264,hevc,m4v,ivf,asf,gif,obu"
_SAME = 1e-6  # seconds: a frame that begins as exactly as rounding allows at a time is on show then
_OPTIONS = {"format_whitelist": _CONTAINERS, "protocol_whitelist": "file"}


_deadline: ContextVar[float] = ContextVar("decoding ends", default=math.inf)


@contextmanager
def decoding_within(seconds: float) -> Iterator[None]:
    """Let clips that are decoded inside take so many seconds, all together; who exceeds them is a bad file.

    Looked at between two frames or packets, which are small: the largest frame takes a second.
    """
    token = _deadline.set(monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def _check_time(path: Path) -> None:
    if monotonic() > _deadline.get():
        raise BadFileError(f"{path} takes too long to decode: make it shorter or smaller")


@dataclass(frozen=True, slots=True)
class Clip:
    """What a clip's file says, without its pixels."""

    path: Path
    size: tuple[int, int]
    """Width and height as shown, after rotation."""
    duration: float
    """Seconds, found by walking through the packets where the file does not say."""
    rotation: int
    """Degrees counterclockwise, a multiple of 90, by which the stored frames are turned to be upright."""
    codec: str = ""
    """The decoder's name, such as ``h264``."""


def read_clip(path: str | Path) -> Clip:
    """Return a clip's size, duration and rotation. At most one frame is decoded."""
    path = Path(path)
    with _opened(path) as (container, stream):
        duration = _declared_duration(container, stream)
        rotation, codec = 0, str(stream.codec_context.name)
        width, height = _size(stream, path)
        for frame in container.decode(stream):
            rotation, width, height = _rotation(frame), frame.width, frame.height
            break
        else:
            raise BadFileError(f"{path} has a video stream but not one frame in it")
    if duration is None:
        duration = _walked_duration(path)
    if rotation % 180:
        width, height = height, width
    return Clip(path, (width, height), duration, rotation, codec)


def sample_times(start: float, end: float, count: int) -> tuple[float, ...]:
    """Return the middles of ``count`` equal parts of a segment, as ActivityNet-Entities samples its frames.

    >>> sample_times(0.0, 10.0, 5)
    (1.0, 3.0, 5.0, 7.0, 9.0)
    """
    return tuple(start + (at + 0.5) * (end - start) / count for at in range(count))


def sample_frames(
    path: str | Path, start: float = 0.0, end: float | None = None, count: int = 10, *, max_pixels: int = MAX_PIXELS
) -> tuple[list[Frame], tuple[float, ...]]:
    """Return the frames on show in the middle of ``count`` equal parts of a segment, and those times.

    Args:
        path: The clip's file.
        start: Where the segment begins, in seconds.
        end: Where it ends; None is the end of the clip. What lies beyond the last frame shows the last frame.
        count: How many frames.
        max_pixels: Clips with larger frames are refused before anything is decoded.

    Raises:
        BadFileError: The file is missing, damaged, too large, or has no video in it.
    """
    path = Path(path)
    if count < 1:
        raise DeixisError(f"at least one frame must be sampled, not {count}")
    if end is None:
        end = read_clip(path).duration
    if not 0 <= start < end < float("inf"):
        raise DeixisError(f"{path}: a segment runs from a start >= 0 to a later end, not from {start:g} to {end:g} s")
    times = sample_times(start, end, count)
    frames = _frames_at(path, times, max_pixels, seek=start > 1.0, leap=True)
    if frames is None:  # the container's index led past what was wanted
        frames = _frames_at(path, times, max_pixels, seek=False, leap=False)
    if not frames:
        raise BadFileError(f"{path} has a video stream but not one frame in it")
    return frames, times


def walk_frames(path: str | Path, *, max_pixels: int = MAX_PIXELS) -> Iterator[tuple[float, Frame]]:
    """Yield every frame of a clip, upright, with the second it appears at. Few frames are in memory at a time.

    Raises:
        BadFileError: The file is missing, damaged, too large, or has no video in it.
    """
    path = Path(path)
    with _opened(path, max_pixels) as (container, stream):
        for time, frame in _timed(container, stream, path):
            if frame.width * frame.height > max_pixels:
                raise BadFileError(f"{path} has a frame of {frame.width}x{frame.height}, over {max_pixels:,} pixels")
            yield time, _upright(frame)


def walk_small(path: str | Path, side: int) -> Iterator[tuple[float, Frame]]:
    """Yield every frame of a clip squashed to ``side`` x ``side`` and not turned, with the second it appears at.

    Raises:
        BadFileError: The file is missing, damaged, too large, or has no video in it.
    """
    path = Path(path)
    with _opened(path) as (container, stream):
        for time, frame in _timed(container, stream, path):
            if frame.width * frame.height > MAX_PIXELS:
                raise BadFileError(f"{path} has a frame of {frame.width}x{frame.height}, over {MAX_PIXELS:,} pixels")
            yield time, frame.reformat(width=side, height=side, format="rgb24").to_ndarray()


def _frames_at(path: Path, times: Sequence[float], max_pixels: int, *, seek: bool, leap: bool) -> list[Frame] | None:
    """Return the frame on show at each time; None if seeking or leaping ended up after one of them."""
    chosen: list[Frame] = []
    with _opened(path, max_pixels) as (container, stream):
        width, height = _size(stream, path)
        if width * height * 3 * len(times) > MAX_FRAME_BYTES:
            raise BadFileError(
                f"{path}: {len(times)} frames of {width}x{height} need more than {MAX_FRAME_BYTES:,} bytes"
            )
        if seek and not _sought(container, stream, times[0]):
            return None
        shown: Any = None
        frames = _hopping(container, stream, path, times, chosen) if leap else _timed(container, stream, path)
        for time, frame in frames:
            if frame is None:
                return None
            if frame.width * frame.height > max_pixels:
                raise BadFileError(f"{path} has a frame of {frame.width}x{frame.height}, over {max_pixels:,} pixels")
            if shown is None and seek and time > times[0]:
                return None
            if shown is not None and len(chosen) < len(times) and times[len(chosen)] < time - _SAME:
                picture = _upright(shown)  # one frame may be on show at several of the times
                while len(chosen) < len(times) and times[len(chosen)] < time - _SAME:
                    chosen.append(picture)
            shown = frame
            if len(chosen) == len(times):
                break
        if shown is None:
            return None if seek else []
        if len(chosen) < len(times):
            chosen += [_upright(shown)] * (len(times) - len(chosen))
    return chosen


def _hopping(
    container: Any, stream: Any, path: Path, times: Sequence[float], chosen: Sequence[Frame]
) -> Iterator[tuple[float, Any]]:
    """Decode frame by frame, but leap over what lies well before the next time that is wanted.

    ``chosen`` grows while this runs. A leap lands on the last key frame before that time. One that does not get ahead
    of what is decoded already shows that key frames are rare, and no other is tried; one that lands too late yields
    None in the place of a frame.
    """
    last, leap, ahead = -1.0, True, math.inf
    leapt = True
    while leapt:
        leapt = False
        for time, frame in _timed(container, stream, path):
            if time <= last:  # a leap fell short: this was decoded before
                leap, ahead = False, math.inf
                continue
            yield time, None if time > ahead + _SAME else frame
            last, ahead = time, math.inf
            wanted = times[len(chosen)] if len(chosen) < len(times) else last
            if leap and frame.time is not None and wanted - last > WORTH_A_LEAP:
                leap = leapt = _sought(container, stream, wanted)
                if leapt:
                    ahead = wanted
                    break


def _timed(container: Any, stream: Any, path: Path) -> Iterator[tuple[float, Any]]:
    """Decode frame by frame with the time each is shown; frames without a timestamp follow at the frame rate."""
    rate = float(stream.average_rate or stream.guessed_rate or stream.base_rate or 25)
    first = float(stream.start_time * stream.time_base) if stream.start_time is not None else 0.0
    last = -1.0 / rate
    for number, frame in enumerate(container.decode(stream)):
        if number >= MAX_DECODED:
            raise BadFileError(f"{path}: over {MAX_DECODED:,} frames before the segment ends: cut the clip first")
        _check_time(path)
        shown = last + 1.0 / rate if frame.time is None else frame.time - first
        last = shown
        yield shown, frame


def _sought(container: Any, stream: Any, time: float) -> bool:
    try:
        container.seek(int(time / stream.time_base) + (stream.start_time or 0), stream=stream, backward=True)
    except av.error.FFmpegError:  # streams without an index, such as raw H.264
        return False
    return True


def _declared_duration(container: Any, stream: Any) -> float | None:
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    if container.duration and container.duration > 0:
        return float(container.duration / av.time_base)
    return None


def _walked_duration(path: Path) -> float:
    """Find the end of the last packet without decoding; packets without times are counted at the frame rate."""
    with _opened(path) as (container, stream):
        rate = float(stream.average_rate or stream.guessed_rate or stream.base_rate or 25)
        first = last = None
        packets = 0
        for packet in container.demux(stream):
            _check_time(path)
            if packet.size == 0:
                continue
            packets += 1
            if packet.pts is not None:
                begin = float(packet.pts * packet.time_base)
                end = begin + (float(packet.duration * packet.time_base) if packet.duration else 1.0 / rate)
                first = begin if first is None else min(first, begin)
                last = end if last is None else max(last, end)
    if first is not None and last is not None:
        return last - first
    return packets / rate


def _size(stream: Any, path: Path) -> tuple[int, int]:
    width, height = stream.codec_context.width, stream.codec_context.height
    if width < 1 or height < 1:
        raise BadFileError(f"{path} does not say how large its frames are: it is damaged or cut off")
    return width, height


def _rotation(frame: Any) -> int:
    """Return the turn counterclockwise that makes a frame upright, rounded to quarter turns."""
    return round((frame.rotation or 0) / 90) * 90 % 360


def _upright(frame: Any) -> Frame:
    pixels = frame.to_ndarray(format="rgb24")  # (H, W, 3)
    return np.ascontiguousarray(np.rot90(pixels, _rotation(frame) // 90))


@contextmanager
def _opened(path: Path, max_pixels: int = MAX_PIXELS) -> Iterator[tuple[Any, Any]]:
    """Open a clip and its first video stream; whatever the decoder complains about becomes an error with the name."""
    try:
        if not path.is_file():
            raise BadFileError(f"{path} is a folder, not a clip" if path.is_dir() else f"there is no file {path}")
        with av.open(f"file:{path}", options=_OPTIONS, timeout=OPENING) as container:
            if not container.streams.video:
                raise BadFileError(f"{path} has no video in it")
            stream = container.streams.video[0]
            if stream.codec_context is None:
                raise BadFileError(f"{path} is in a format that cannot be decoded, or its header is damaged")
            stream.thread_type = "AUTO"
            width, height = stream.codec_context.width, stream.codec_context.height
            if width * height > max_pixels:
                raise BadFileError(f"{path} has frames of {width}x{height}; at most {max_pixels:,} pixels are read")
            yield container, stream
    except av.error.FFmpegError as error:
        raise BadFileError(f"{path} is not a clip that can be read, or it is damaged: {error.strerror}") from error
    except (ValueError, OverflowError, MemoryError, OSError) as error:
        raise BadFileError(f"{path} is not a clip that can be read, or it is damaged: {error}") from error
