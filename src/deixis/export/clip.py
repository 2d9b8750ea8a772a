"""A clip with its answers drawn in: boxes that move with the things, their words as labels, the sentence below."""

from __future__ import annotations

import errno
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from deixis.atomic import whole_file
from deixis.errors import BadFileError, DeixisError
from deixis.export.draw import Drawing, colour_of, drawing_of_caption, ink_on
from deixis.types import Box, GroundedCaption
from deixis.video import read_clip, walk_frames

SMALLEST, LARGEST = 640, 1280
"""Pixels of the longer side: small clips grow so that labels can be read, large ones shrink so that they stay light."""
SLIDING = 0.05
"""Boxes of neighbouring frames with a smaller overlap are not slid into each other."""
_CLOCK = 90_000  # ticks a second, as MP4 likes it
_PLAYED = (".mp4", ".m4v", ".mov", ".webm")
_DECODED = frozenset(["h264", "vp8", "vp9", "libvpx", "libvpx-vp9", "av1", "libdav1d", "libaom-av1"])
_GREY = "#e2e2e2"

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def write_annotated_clip(
    path: str | Path,
    clip: str | Path,
    captions: Sequence[GroundedCaption],
    *,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Write a clip again as MP4 with the boxes and sentences of its segments; without its sound.

    Frames keep their times, so a variable frame rate stays one. Where segments overlap, the one that began last is
    on show.

    Args:
        path: The MP4 to write; it is wholly there or not at all.
        clip: The clip that was captioned.
        captions: One for each segment, with ``segment`` and ``frame_times`` in seconds of the clip.
        progress: Called with the second that was just drawn.
    """
    path = Path(path)
    if not captions:
        raise DeixisError(f"there are no captions of {clip} to draw")
    artist: _Artist | None = None

    def drawn() -> Iterator[tuple[float, Pixels]]:
        nonlocal artist
        for time, pixels in walk_frames(clip):
            artist = artist or _Artist(captions, (pixels.shape[1], pixels.shape[0]))
            yield time, np.asarray(artist.draw(pixels, time))

    return _encode(path, drawn(), progress)


def playable(clip: str | Path) -> bool:
    """Whether browsers play a clip as it is: H.264, VP8, VP9 or AV1 in MP4 or WebM."""
    return Path(clip).suffix.lower() in _PLAYED and read_clip(clip).codec in _DECODED


def write_playable_clip(path: str | Path, clip: str | Path) -> Path:
    """Write a clip again as MP4 in a form that browsers play, without its sound."""

    def even() -> Iterator[tuple[float, Pixels]]:
        for time, pixels in walk_frames(clip):
            yield time, np.ascontiguousarray(pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2])

    return _encode(Path(path), even(), None)


def _encode(path: Path, frames: Iterator[tuple[float, Pixels]], progress: Callable[[float], None] | None) -> Path:
    """Write frames with their times as an MP4; a clip that cannot be read to its end leaves nothing behind."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as part, av.open(str(part), "w", format="mp4") as container:
            stream: Any = None
            last = -1
            for time, pixels in frames:
                stream = stream or _stream(container, (pixels.shape[1], pixels.shape[0]))
                last = max(round(time * _CLOCK), last + 1)  # two frames cannot appear at once
                frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                frame.pts, frame.time_base = last, Fraction(1, _CLOCK)
                container.mux(stream.encode(frame))
                if progress is not None:
                    progress(time)
            if stream is None:
                raise BadFileError(f"there is not one frame to write to {path}")
            container.mux(stream.encode(None))
    except (av.error.FFmpegError, OSError) as error:
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        raise DeixisError(f"cannot write {path}: {'the disk is full' if full else error.strerror or error}") from error
    return path


def _stream(container: Any, size: tuple[int, int]) -> Any:
    codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
    stream = container.add_stream(codec, rate=25)
    stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
    stream.time_base = stream.codec_context.time_base = Fraction(1, _CLOCK)
    if codec == "libx264":
        stream.options = {"crf": "20", "preset": "veryfast"}
    return stream


class _Artist:
    """Draws the frames of one clip; knows where everything goes before the first one."""

    def __init__(self, captions: Sequence[GroundedCaption], clip: tuple[int, int]) -> None:
        longer = max(clip)
        scale = min(max(1.0, SMALLEST / longer), LARGEST / longer)
        self.picture = tuple(max(2, round(side * scale / 2) * 2) for side in clip)  # even sides, as H.264 needs
        self.captions = [(caption, drawing_of_caption(caption, ())) for caption in captions]
        unit = max(self.picture) / 640
        self.label_font, self.thick = _font(round(14 * unit)), max(2, round(2.5 * unit))
        strips = [_Strip(drawing, self.picture[0], round(18 * unit)) for _, drawing in self.captions]
        strip = max(one.height for one in strips) // 2 * 2
        self.size = self.picture[0], self.picture[1] + strip
        self.strips = [one.draw((self.picture[0], strip)) for one in strips]
        self.empty = Image.new("RGB", (self.picture[0], strip), "white")

    def draw(self, pixels: Pixels, time: float) -> Image.Image:
        """Return a frame with what is said at its time."""
        sheet = Image.new("RGB", self.size, "white")
        picture = Image.fromarray(pixels).resize((self.picture[0], self.picture[1]), Image.Resampling.BILINEAR)
        at = on_show([caption for caption, _ in self.captions], time)
        if at is not None:
            self._boxes(picture, *self.captions[at], time)
        sheet.paste(picture, (0, 0))
        sheet.paste(self.empty if at is None else self.strips[at], (0, self.picture[1]))
        return sheet

    def _boxes(self, picture: Image.Image, caption: GroundedCaption, drawing: Drawing, time: float) -> None:
        pen, colours = ImageDraw.Draw(picture), drawing.colours
        wide, high = picture.width / caption.size[0], picture.height / caption.size[1]
        labels: list[tuple[Box, str, str]] = []
        for mark in drawing.marks:
            box = None if mark.doubted else box_at(mark.boxes, mark.frames, caption.frame_times, time)
            if box is None:
                continue
            x1, y1, x2, y2 = box[0] * wide, box[1] * high, box[2] * wide - 1, box[3] * high - 1
            placed = (x1, y1, max(x1, x2), max(y1, y2))
            colour = colour_of(colours[mark.key])[0]
            pen.rectangle(placed, outline="#ffffff", width=self.thick + 1)  # a hairline that shows on any ground
            pen.rectangle(placed, outline=colour, width=self.thick)
            labels.append((placed, mark.label, colour))
        taken: list[Box] = []
        for box, label, colour in labels:
            room = _room(pen, box, label, self.label_font, picture.size, taken)
            taken.append(room)
            pen.rectangle(room, fill=colour)
            pen.text((room[0] + 4, room[1] + 2), label, fill=ink_on(colour), font=self.label_font)


def on_show(captions: Sequence[GroundedCaption], time: float) -> int | None:
    """Return the caption whose segment holds a time: the one that began last; None between segments."""
    holding = [
        (caption.segment[0], at)
        for at, caption in enumerate(captions)
        if caption.segment is not None and caption.segment[0] <= time < caption.segment[1]
    ]
    return max(holding)[1] if holding else None


def box_at(boxes: Sequence[Box], frames: Sequence[int], times: Sequence[float], time: float) -> Box | None:
    """Return where a thing is at a time: between two frames that both show it, on the way from one to the other.

    Where the boxes lie apart (the picture was cut, or it is another thing), and beside a frame that shows the thing
    alone, a box holds for half the distance to the next frame.

    Args:
        boxes: One for each frame that shows the thing.
        frames: Which of the sampled frames those are.
        times: When the sampled frames are on show.
        time: The moment asked for.
    """
    on = dict(zip(reversed(frames), reversed(boxes), strict=True))  # the first of several boxes on one frame
    after = next((at for at, shown in enumerate(times) if shown > time), len(times))
    first, second = on.get(after - 1), on.get(after)
    if not 0 < after < len(times):  # before the first frame or after the last
        return first or second
    start, end = times[after - 1], times[after]
    share = (time - start) / (end - start)
    if first is not None and second is not None and _overlap(first, second) >= SLIDING:
        x1, y1, x2, y2 = (a + share * (b - a) for a, b in zip(first, second, strict=True))
        return x1, y1, x2, y2
    return first if share <= 0.5 else second


def _overlap(a: Box, b: Box) -> float:
    shared = max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return shared / max(both - shared, 1e-9)


def _room(
    pen: ImageDraw.ImageDraw, box: Box, label: str, font: Font, size: tuple[int, int], taken: Sequence[Box]
) -> Box:
    """Return where a label goes: on its box, else inside it, lower where other labels are. Always the same way, so
    that labels do not jump from frame to frame."""
    _, _, right, bottom = pen.textbbox((0, 0), label, font=font)
    width, height = right + 8, bottom + 5
    x = min(max(box[0], 0.0), max(0.0, size[0] - width))
    y = box[1] - height if box[1] >= height else max(box[1], 0.0)
    for _ in range(len(taken) + 1):
        hidden = [other for other in taken if _meet((x, y, x + width, y + height), other)]
        if not hidden:
            break
        y = min(max(other[3] for other in hidden) + 1, max(0.0, size[1] - height))
    return x, y, x + width, y + height


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


class _Strip:
    """A sentence below the picture, its things in their colours, broken into lines."""

    def __init__(self, drawing: Drawing, width: int, size: int) -> None:
        self.font, self.size = _font(size), size
        self.pieces: list[tuple[float, float, str, str | None]] = []  # x, y, word, colour
        margin, step = size * 0.6, size * 1.6
        x, y = margin, margin
        for word, colour in _words(drawing):
            length = self.font.getlength(word)
            if not word[0].isalnum():  # a full stop stays at its word
                x -= self.font.getlength(" ")
            if x > margin and x + length > width - margin:
                x, y = margin, y + step
            self.pieces.append((x, y, word, colour))
            x += length + self.font.getlength(" ") + (size * 0.2 if colour else 0)
        self.height = math.ceil(y + step + margin * 0.5)

    def draw(self, size: tuple[int, int]) -> Image.Image:
        """Return the strip as a picture of a size."""
        strip = Image.new("RGB", size, "white")
        pen = ImageDraw.Draw(strip)
        for x, y, word, colour in self.pieces:
            if colour is not None:
                room = (x - 3, y - 2, x + self.font.getlength(word) + 3, y + self.size * 1.3)
                pen.rounded_rectangle(room, 4, colour)
            pen.text((x, y), word, fill="#222222" if colour is None else ink_on(colour), font=self.font)
        return strip


def _words(drawing: Drawing) -> list[tuple[str, str | None]]:
    """Return the words of a drawing's sentence with their colours; things without a box that is shown are grey."""
    colours, doubted = drawing.colours, drawing.doubted
    found: list[tuple[str, str | None]] = []
    for line in drawing.lines:
        at = 0
        for start, end, key in sorted(line.spans):
            found += [(word, None) for word in line.text[at:start].split()]
            known = key in colours and key not in doubted
            found.append((line.text[start:end], colour_of(colours[key])[0] if known else _GREY))
            at = end
        found += [(word, None) for word in line.text[at:].split()]
    return found


def _font(size: int) -> Font:
    return ImageFont.load_default(size)
