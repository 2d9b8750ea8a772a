"""How long a search takes in an index of many photos, warm.

    python -m benchmarks.search_speed [--photos 100000] [--json]

The index is simulated: its files have the form and the sizes of a real one made with the shipped model, but word scores
and region features are random, and all segments share the regions of one (as links to one file), so that it fits on any
disk. The photos are empty files. What is timed is real: ``PhotoIndex.search`` as ``deixis search`` and the page call
it, each of its two stages by itself, and the look for photos that came or went. Processor time is given beside the
clock, as other work on the machine does not change it much.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import deixis
from deixis.answering.load import Deixis
from deixis.answering.search.folder import scan
from deixis.answering.search.index import PhotoIndex
from deixis.answering.search.segments import PHOTOS, REGIONS, WORDS, PhotoFile, write_segment
from deixis.atomic import write_json
from deixis.types import Regions

EXAMPLES = Path(__file__).parents[1] / "examples" / "photos"
PER_SEGMENT = 2048
QUERIES = ("a dog on a sofa", "a man in a red hat", "a white cup", "two people on a beach", "a cat", "a yellow bus")


def make_photos(folder: Path, count: int) -> list[PhotoFile]:
    """Make empty files, a thousand a folder."""
    for number in range(count):
        place = folder / f"{number // 1000:04d}"
        if number % 1000 == 0:
            place.mkdir(parents=True)
        (place / f"{number:07d}.jpg").touch()
    return list(scan(folder).values())


def simulate(index: PhotoIndex, photos: list[PhotoFile], model: Deixis) -> None:
    """Fill an index with segments of random content."""
    rng = np.random.default_rng(0)
    noise = torch.Generator().manual_seed(0)
    seen = [index._kept(one) for one in model.regions(sorted(EXAMPLES.glob("*.jpg")))]
    index.place.mkdir(parents=True)
    first: Path | None = None
    for number, start in enumerate(range(0, len(photos), PER_SEGMENT), 1):
        part = photos[start : start + PER_SEGMENT]
        scores = rng.standard_normal((len(index.manifest.words), len(part)), dtype=np.float32)
        name = f"segment-{number:06d}"
        if first is None or len(part) != PER_SEGMENT:
            regions: list[Regions] = []
            for at in range(len(part)):
                one = seen[at % len(seen)]
                features = torch.randn(one.features.shape, generator=noise).half()
                regions.append(replace(one, features=features))
            write_segment(index.place / name, part, regions, scores)
            first = first or index.place / name
        else:
            (index.place / name).mkdir()
            os.link(first / REGIONS, index.place / name / REGIONS)
            np.save(index.place / name / WORDS, scores.astype(np.float16))
            rows = [[photo.path, photo.bytes, photo.changed] for photo in part]
            write_json(index.place / name / PHOTOS, rows, indent=None)
        index.manifest.segments[name] = set()
    index.manifest.save(index.place)


def timed(ask: Callable[[], object], repeats: int) -> dict[str, float]:
    """Return the median of clock and processor time in milliseconds, after one call that warms up."""
    ask()
    clock, processor = [], []
    for _ in range(repeats):
        began, used = time.perf_counter(), time.process_time()
        ask()
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
    return {"clock_ms": 1000 * statistics.median(clock), "processor_ms": 1000 * statistics.median(processor)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    model = deixis.load("lite")
    place = Path(tempfile.mkdtemp(prefix="deixis-search-"))
    try:
        photos = make_photos(place / "photos", options.photos)
        simulate(PhotoIndex(model, place / "photos", place / "index"), photos, model)
        size = sum(file.stat().st_size for file in (place / "index").rglob("*") if file.is_file())
        opened = timed(lambda: PhotoIndex(model, place / "photos", place / "index"), 3)
        index = PhotoIndex(model, place / "photos", place / "index")
        assert len(index) == options.photos
        queries = iter(QUERIES * 100)
        figures = {
            "open the index": opened,
            "search, 20 photos with boxes": timed(lambda: index.search(next(queries)), options.repeats),
            "first stage alone": timed(lambda: index._best(("dog", "sofa"), 100), options.repeats),
            "look for new photos": timed(lambda: scan(place / "photos"), 3),
        }
    finally:
        shutil.rmtree(place)
    facts = {"photos": options.photos, "megabytes_per_1000": size / options.photos / 1000, "figures": figures}
    if options.json:
        print(json.dumps(facts))
        return
    print(f"{options.photos:,} photos, {size / options.photos / 1000:.0f} kB a photo")
    for name, value in figures.items():
        print(f"{name:32s} {value['clock_ms']:8.0f} ms, {value['processor_ms']:8.0f} ms of processor")


if __name__ == "__main__":
    main()
