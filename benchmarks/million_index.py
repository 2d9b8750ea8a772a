"""Search indexes of growing size: what a photo costs on disk, opening, reading at random, searching and growing.

    python -m benchmarks.million_index [--photos 10000 100000 1000000] [--words 400] [--json]

The files are those of a real index of the model that ships, with fewer words (``--words``; a real one has thousands,
and its scores lie in the same rows). Scores are noise, and all segments share the regions and scores of one as links to
one file, so that a million fit on any disk; the photos themselves are not there. Opened, read and searched is by the
real code. What a photo costs should be flat; the table gives ratios to the first index, of processor time, --json the
times as they are. *First stage* looks at every photo, so it is given for each photo; *random read* takes the regions of
one photo, as the second stage does for its candidates; *growing* adds one more segment and writes the list anew.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import deixis
from deixis.answering.load import Deixis
from deixis.answering.search.index import LARGE, PhotoIndex
from deixis.answering.search.segments import PHOTOS, REGIONS, WORDS, PhotoFile, write_segment
from deixis.atomic import write_json

EXAMPLES = Path(__file__).parents[1] / "examples" / "photos"
READS = 500
SEGMENTS = 20
"""Segments whose photos are read at random."""


class Made:
    """An index that is filled with segments of noise."""

    def __init__(self, model: Deixis, folder: Path, words: int) -> None:
        self.model, self.folder = model, folder
        (folder / "photos").mkdir(parents=True)
        index = self.opened()
        index.place.mkdir()
        index.manifest.words = index.manifest.words[:words]
        self.words = len(index.manifest.words)
        seen = [index._kept(one) for one in model.regions(sorted(EXAMPLES.glob("*.jpg")))]
        scores = np.random.default_rng(0).standard_normal((self.words, LARGE), dtype=np.float32)
        self.first = folder / "first"
        write_segment(self.first, self.named(0, LARGE), [seen[at % len(seen)] for at in range(LARGE)], scores)
        index.manifest.save(index.place)

    def opened(self) -> PhotoIndex:
        """Open the index as ``deixis search`` does."""
        return PhotoIndex(self.model, self.folder / "photos", self.folder / "index")

    def named(self, first: int, count: int) -> list[PhotoFile]:
        """Return photos, a thousand a folder."""
        return [PhotoFile(f"{at // 1000:04d}/{at:07d}.jpg", 100_000, at) for at in range(first, first + count)]

    def grow(self, index: PhotoIndex, segments: int) -> None:
        """Add segments that link to the first one's arrays."""
        for _ in range(segments):
            number = index.manifest.next
            place = index.place / f"segment-{number:06d}"
            place.mkdir()
            for name in (REGIONS, WORDS):
                os.link(self.first / name, place / name)
            photos = self.named((number - 1) * LARGE, LARGE)
            write_json(place / PHOTOS, [[photo.path, photo.bytes, photo.changed] for photo in photos], indent=None)
            index.manifest.segments[place.name] = set()
            index.manifest.next += 1

    def bytes(self) -> int:
        """Return the size of the index on a disk where nothing is shared."""
        return sum(file.stat().st_size for file in (self.folder / "index").rglob("*") if file.is_file())


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    """Return the processor time of one call."""
    began = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - began) / repeats


def measure(made: Made, photos: int) -> dict[str, Any]:
    """Fill an index up to so many photos, then open, read and search it, and let it grow once more."""
    index = made.opened()
    made.grow(index, -(-photos // LARGE) - len(index.manifest.segments))
    index.manifest.save(index.place)
    nothing = seconds(lambda: PhotoIndex(made.model, made.folder / "photos", made.folder / "none"))  # the model's name
    opened = seconds(made.opened) - nothing
    index = made.opened()
    count = len(index)
    draw = random.Random(1)
    segments = draw.sample(list(index._segments.values()), min(SEGMENTS, len(index._segments)))
    chosen = [(draw.choice(segments), draw.randrange(LARGE)) for _ in range(READS)]
    for segment in segments:
        segment.regions(0)  # maps its file
    read = seconds(lambda: [segment.regions(row) for segment, row in chosen]) / READS
    asked = index.manifest.words[:2]
    index._best(asked, 100)
    stage = seconds(lambda: index._best(asked, 100), 3)
    made.grow(index, 1)
    growing = seconds(index._commit)
    return {
        "photos": count,
        "segments": len(index._segments) - 1,
        "words": made.words,
        "bytes_per_photo": made.bytes() / (count + LARGE),
        "open_microseconds_per_photo": 1e6 * opened / count,
        "open_seconds": opened,
        "random_read_microseconds": 1e6 * read,
        "first_stage_nanoseconds_per_photo": 1e9 * stage / count,
        "first_stage_seconds": stage,
        "grow_seconds": growing,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure indexes one after another and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.million_index", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--photos", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--words", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    model, rows = deixis.load("lite"), []
    with tempfile.TemporaryDirectory(prefix="deixis-million-") as folder:
        made = Made(model, Path(folder) / "made", options.words)
        for photos in sorted(options.photos):
            rows.append(measure(made, photos))
            if not options.json:
                print(_line(rows[-1], rows[0]), flush=True)
    if options.json:
        print(json.dumps(rows))


def _line(row: dict[str, Any], first: dict[str, Any]) -> str:
    """One row of the table: beside the first index."""
    times = {name: f"{row[name] / first[name]:.2f}" for name in row}
    return (
        f"{row['photos']:>10,} photos, {row['segments']:,} segments, {row['bytes_per_photo']:.0f} bytes each with "
        f"{row['words']} words; in times of the first: opening, for each, {times['open_microseconds_per_photo']} "
        f"({row['open_seconds']:.2f} s), random read {times['random_read_microseconds']}, first stage, for each, "
        f"{times['first_stage_nanoseconds_per_photo']} ({row['first_stage_seconds']:.2f} s), growing by a segment "
        f"{times['grow_seconds']} ({row['grow_seconds']:.2f} s)"
    )


if __name__ == "__main__":
    main()
