"""Region stores of growing size: what a photo costs on disk, how long opening takes, and what a random read costs.

    python -m benchmarks.million [--images 10000 100000 1000000] [--regions 4] [--features 16] [--json]

Photos have few and narrow regions, so that a million fit on any disk; what grows with the number of photos (ids,
shards, files) is that of a real store. What a photo costs should be flat. The table gives ratios within one run, --json
the times as they are: of the processor, as the clock shows the disk's waiting (every shard is on it before the next
begins) and other work of the machine. A first read opens a shard of its own and checks the photo; then photos of those
shards are read at random.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from deixis.regions.store.reader import RegionStore
from deixis.regions.store.shards import encode, pack
from deixis.regions.store.writer import Part, StoreWriter
from deixis.types import Regions

PER_SHARD = 256
READS = 2000
SHARDS = 30
"""Shards whose photos are read."""


def one_photo(seed: int, regions: int, features: int) -> Regions:
    rng = torch.Generator().manual_seed(seed)
    corner = torch.rand(regions, 2, generator=rng) * 200
    return Regions(
        boxes=torch.cat([corner, corner + 100 * torch.rand(regions, 2, generator=rng)], 1),
        features=torch.randn(regions, features, generator=rng),
        objectness=torch.rand(regions, generator=rng),
        size=(320, 320),
        fingerprint="random",
    )


def write_many(path: Path, images: int, regions: int, features: int) -> RegionStore:
    """Write a store by its real writer, shard by shard; the same few photos again and again under new names."""
    ids = [f"{number:012}" for number in range(images)]
    photos = [one_photo(seed, regions, features) for seed in range(PER_SHARD)]
    writer = StoreWriter(path, ids, "random", {"regions": regions}, per_shard=PER_SHARD, per_part=PER_SHARD)
    facts: dict[str, Any] = {"failed": [], "fingerprint": "random", "class_names": [], "word_names": []}
    whole = encode(photos)
    for number in writer.pending:
        names = list(writer.part_ids(number))
        arrays = whole if len(names) == PER_SHARD else encode(photos[: len(names)])
        writer.add(Part(number, pack(arrays, {**facts, "ids": names})))
    return writer.finish()


def measure(images: int, regions: int, features: int, folder: Path) -> dict[str, Any]:
    """Write, open and read a store of so many photos."""
    began, clock = time.process_time(), time.perf_counter()
    write_many(folder, images, regions, features)
    wrote, wrote_clock = time.process_time() - began, time.perf_counter() - clock
    began = time.process_time()
    store = RegionStore.open(folder)
    opened = time.process_time() - began
    draw = random.Random(1)
    shards = draw.sample(range(images // PER_SHARD or 1), min(SHARDS, images // PER_SHARD or 1))
    each = min(PER_SHARD, images)
    first = [store.ids[shard * PER_SHARD + draw.randrange(each)] for shard in shards]
    again = [store.ids[draw.choice(shards) * PER_SHARD + draw.randrange(each)] for _ in range(READS)]
    reads = []
    for chosen in (first, again):
        began = time.process_time()
        for name in chosen:
            store.get(name)
        reads.append(1e6 * (time.process_time() - began) / len(chosen))
    size = sum(file.stat().st_size for file in folder.iterdir())
    return {
        "images": images,
        "shards": len(store.header.shards),
        "bytes_per_image": size / images,
        "write_microseconds_per_image": 1e6 * wrote / images,
        "write_clock_seconds": wrote_clock,
        "open_microseconds_per_image": 1e6 * opened / images,
        "open_seconds": opened,
        "first_read_microseconds": reads[0],
        "random_read_microseconds": reads[1],
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure stores one after another and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--images", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--regions", type=int, default=4)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rows = []
    for images in options.images:
        with tempfile.TemporaryDirectory(prefix="deixis-million-") as folder:
            rows.append(measure(images, options.regions, options.features, Path(folder) / "store"))
        if not options.json:
            print(_line(rows[-1], rows[0]), flush=True)
    if options.json:
        print(json.dumps(rows))


def _line(row: dict[str, Any], first: dict[str, Any]) -> str:
    """One row of the table: beside the first store."""
    times = {name: f"{row[name] / first[name]:.2f}" for name in row if name.endswith(("_image", "_microseconds"))}
    return (
        f"{row['images']:>10,} images, {row['shards']:,} shards, {row['bytes_per_image']:.0f} bytes each; in times of "
        f"the first: writing one {times['write_microseconds_per_image']}, opening, for each, "
        f"{times['open_microseconds_per_image']} ({row['open_seconds']:.2f} s), first read "
        f"{times['first_read_microseconds']}, random read {times['random_read_microseconds']}"
    )


if __name__ == "__main__":
    main()
