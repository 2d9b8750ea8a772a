"""Where one shot of a clip ends and another begins: hard cuts, seen in the colours of small frames.

Between two frames of one shot colours hardly change, however fast things move; at a cut both the colours and the
picture change at once, and much more than shortly before and after. Fades and dissolves are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deixis.video import Frame, walk_small

SIDE = 32
LEVELS = 4  # of each colour: 64 kinds of colour
COLOURS_CHANGE = 0.3  # share of pixels that must change their kind of colour at a cut
PICTURE_CHANGES = 0.1  # mean change of a pixel, as a share of the range
STANDS_OUT = 3.0  # a cut changes so many times more than the frames around it: a flickering light does not
AROUND = 6  # frames before and after that it is compared with


def find_cuts(clip: str | Path) -> list[float]:
    """Return the seconds at which a new shot begins; a clip of one shot has none."""
    return cuts_of(walk_small(clip, SIDE))


def cuts_of(frames: Iterable[tuple[float, Frame]]) -> list[float]:
    """Find the cuts among small frames (SIDE, SIDE, 3) with the second each appears at."""
    times: list[float] = []
    colours, pictures = [0.0], [0.0]  # how much each frame differs from the one before
    last: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    for time, frame in frames:
        now = _histogram(frame), frame.astype(np.float64)
        if last is not None:
            colours.append(float(np.abs(now[0] - last[0]).sum() / 2))
            pictures.append(float(np.abs(now[1] - last[1]).mean() / 255))
        times.append(time)
        last = now
    found = []
    for at in range(1, len(times)):
        around = pictures[max(1, at - AROUND) : at] + pictures[at + 1 : at + 1 + AROUND]
        usual = float(np.median(around)) if around else 0.0
        if colours[at] > COLOURS_CHANGE and pictures[at] > max(PICTURE_CHANGES, STANDS_OUT * usual):
            found.append(times[at])
    return found


def _histogram(frame: Frame) -> NDArray[np.float64]:
    """The share of pixels of each kind of colour, (64,)."""
    kinds = frame.astype(np.int64) * LEVELS // 256  # (H, W, 3)
    number = (kinds[..., 0] * LEVELS + kinds[..., 1]) * LEVELS + kinds[..., 2]
    return np.bincount(number.reshape(-1), minlength=LEVELS**3) / number.size
