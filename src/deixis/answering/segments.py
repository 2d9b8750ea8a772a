"""Which stretches of a clip are captioned: given in seconds, read from a file, or cut by the clock."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from deixis.errors import BadFileError, DeixisError
from deixis.reading.files import read_text
from deixis.reading.plain import parse_json

Segment = tuple[float, float]

LENGTH = 5.0
"""Seconds of a segment where nobody says."""
ALONE = 10.0
"""A clip up to so many seconds is one segment where nobody says."""
SHORTEST = 0.5
"""Seconds; a shorter shot is a flash, or no shot at all."""
MOST = 2_000
"""Segments of one clip; more is taken for a mistake."""
LARGEST_FILE = 16 * 2**20

_CLOCK = re.compile(r"(?:(?:(\d+):)?(\d+):)?(\d+(?:\.\d*)?|\.\d+)\s*s?", re.ASCII)


def choose_segments(
    duration: float,
    segments: Sequence[Segment] | None = None,
    every: float | None = None,
    *,
    cuts: Sequence[float] = (),
    clip: str = "the clip",
) -> list[Segment]:
    """Return the segments of a clip in order of time, each inside it.

    Args:
        duration: Seconds of the clip.
        segments: Wanted ones. They may overlap and come in any order; one that is there twice is taken once. What
            reaches beyond the end of the clip is cut there; one that begins there is an error.
        every: Cut the clip into equal stretches of about so many seconds: a rest of less than half belongs to the
            last one.
        cuts: Seconds at which a new shot begins: no stretch that is cut by the clock reaches over one.
        clip: What errors call it.

    Without ``segments`` and ``every``, a shot up to 10 s is one segment, and a longer one is cut every 5 s.

    >>> choose_segments(12.0, every=5)
    [(0.0, 5.0), (5.0, 12.0)]
    >>> choose_segments(12.0, every=5, cuts=[4.0])
    [(0.0, 4.0), (4.0, 9.0), (9.0, 12.0)]
    """
    if segments is not None and every is not None:
        raise DeixisError("give segments, or cut every so many seconds, not both")
    if segments is not None:
        if not segments:
            raise DeixisError(f"there are no segments to caption in {clip}")
        if len(segments) > MOST:
            raise DeixisError(f"{len(segments):,} segments are too many for {clip}: at most {MOST:,}")
        return list(dict.fromkeys(sorted(_inside(segment, duration, clip) for segment in segments)))
    if every is not None and not (math.isfinite(every) and every > 0):
        raise DeixisError(f"a clip is cut every so many seconds, more than 0, not every {every:g}")
    parts = [(start, end, _stretches(end - start, every)) for start, end in shots(duration, cuts)]
    number = sum(count for _, _, (count, _) in parts)
    if number > MOST:
        raise DeixisError(f"cut every {every or LENGTH:g} s, {clip} has {number:,} segments: at most {MOST:,}")
    return [
        (start + at * length, end if at == count - 1 else start + (at + 1) * length)
        for start, end, (count, length) in parts
        for at in range(count)
    ]


def shots(duration: float, cuts: Sequence[float]) -> list[Segment]:
    """Return the stretches between cuts; one of less than half a second belongs to the one after it."""
    edges = [0.0]
    for cut in sorted(cuts):
        if cut - edges[-1] >= SHORTEST and duration - cut >= SHORTEST:
            edges.append(float(cut))
    return list(pairwise([*edges, duration]))


def _stretches(length: float, every: float | None) -> tuple[int, float]:
    """How many stretches a shot is cut into, and the length of all but the last."""
    if every is None:
        every = LENGTH if length > ALONE else length
    return max(1, math.floor(length / every + 0.5)), every


def _inside(segment: Segment, duration: float, clip: str) -> Segment:
    start, end = (float(value) for value in segment)
    if not (math.isfinite(start) and math.isfinite(end) and 0 <= start < end):
        raise DeixisError(f"a segment runs from a start >= 0 to a later end, not from {start:g} to {end:g} s")
    if start >= duration:
        raise DeixisError(f"the segment from {start:g} to {end:g} s begins after the end of {clip} at {duration:.2f} s")
    return start, min(end, duration)


def parse_seconds(text: str) -> float:
    """Read a time: seconds (``5``, ``2.5s``), minutes (``1:30``) or hours (``1:02:03.5``).

    >>> parse_seconds("1:30")
    90.0
    """
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        raise DeixisError(f"a time is written as 5, 2.5s, 1:30 or 1:02:03, not {text[:40]!r}")
    hours, minutes, seconds = found.groups()
    return 3600.0 * int(hours or 0) + 60.0 * int(minutes or 0) + float(seconds)


def read_segments(path: str | Path, clip: str | Path) -> list[Segment]:
    """Read the segments of a clip from a file.

    JSON: ``[[start, end], …]`` or ``{"timestamps": [[start, end], …]}``, alone or under the clip's name as in
    ActivityNet Captions, or an annotation file of ActivityNet-Entities. Anything else is read as a table: start and
    end are the first two columns, or those with these names; commas, tabs or semicolons between them.
    """
    path = Path(path)
    text = read_text(path, limit=LARGEST_FILE)
    if text.lstrip()[:1] in ("{", "["):
        return _of_json(parse_json(text, str(path)), Path(clip).stem, path)
    return _of_table(text, path)


def _of_json(data: Any, name: str, path: Path) -> list[Segment]:
    if isinstance(data, Mapping) and isinstance(data.get("annotations"), Mapping):
        data = data["annotations"]
    if isinstance(data, Mapping) and not {"timestamps", "segments"} & data.keys():
        known = next((data[key] for key in (name, f"v_{name}", name.removeprefix("v_")) if key in data), None)
        if known is None:
            raise BadFileError(f'{path} has no segments of {name!r}: expected {{"timestamps": [[start, end], …]}}')
        data = known
    if isinstance(data, Mapping):
        parts = data.get("segments")
        if "timestamps" in data:
            data = data["timestamps"]
        elif isinstance(parts, Mapping):  # ActivityNet-Entities numbers them
            data = [part.get("timestamps") if isinstance(part, Mapping) else part for part in parts.values()]
        else:
            data = parts
    if not isinstance(data, list):
        raise BadFileError(f"{path} should hold [[start, end], …] in seconds, not {type(data).__name__}")
    return [_pair(value, f"{path}: segment {at}") for at, value in enumerate(data)]


def _of_table(text: str, path: Path) -> list[Segment]:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    mark = next((mark for mark in ("\t", ";", ",") if mark in lines[0]), None)
    rows = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=mark)) if mark else [line.split() for line in lines]
    names = [name.strip().lower() for name in rows[0]]
    columns = (0, 1)
    if "start" in names and "end" in names:
        columns = (names.index("start"), names.index("end"))
        rows = rows[1:]
    found = []
    for at, row in enumerate(rows, 1):
        if len(row) <= max(columns):
            raise BadFileError(f"{path}: row {at} should have a start and an end, got {row!r}"[:300])
        found.append(_pair([row[column] for column in columns], f"{path}: row {at}"))
    return found


def _pair(value: Any, where: str) -> Segment:
    try:
        start, end = (parse_seconds(part) if isinstance(part, str) else _number(part) for part in value)
    except (TypeError, ValueError, DeixisError) as error:
        raise BadFileError(f"{where} should be a start and an end in seconds, not {value!r}"[:300]) from error
    return start, end


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    return float(value)
