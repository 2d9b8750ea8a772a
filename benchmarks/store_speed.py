"""How long a random batch takes to read from a region store, warm, for stores of growing size.

    python benchmarks/store_speed.py [--images 500 2000 8000] [--json]

Writes stores of random regions (100 and the whole image, 512 features, 80 classes, 1,000 words) into a temporary
folder, touches every image once, and times batches of 64 images drawn at random. Also times a real store: --store PATH.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import write_store
from deixis.types import Regions

CLASSES = tuple(f"class {number}" for number in range(80))
WORDS = tuple(f"word {number}" for number in range(1000))


def random_regions(count: int) -> Iterator[tuple[str, Regions]]:
    rng = torch.Generator().manual_seed(0)
    for number in range(count):
        corner = torch.rand(101, 2, generator=rng) * 200
        yield (
            f"{number:06}",
            Regions(
                boxes=torch.cat([corner, corner + 100 * torch.rand(101, 2, generator=rng)], 1),
                features=torch.randn(101, 512, generator=rng),
                objectness=torch.rand(101, generator=rng),
                regionness=torch.rand(101, generator=rng),
                class_probs=torch.rand(101, 80, generator=rng),
                class_names=CLASSES,
                word_probs=torch.rand(101, 1000, generator=rng),
                word_names=WORDS,
                global_features=torch.randn(1, 512, generator=rng),
                size=(320, 320),
                fingerprint="random",
            ),
        )


def time_batches(store: RegionStore, batch: int, repeats: int, fields: tuple[str, ...] | None) -> dict[str, Any]:
    for at in range(0, len(store), batch):  # warm: every page in memory, every checksum compared
        store.batch(store.ids[at : at + batch], fields)
    rng = torch.Generator().manual_seed(1)
    times = []
    for _ in range(repeats):
        names = [store.ids[at] for at in torch.randperm(len(store), generator=rng)[:batch].tolist()]
        start = time.perf_counter()
        store.batch(names, fields)
        times.append(1000 * (time.perf_counter() - start))
    times.sort()
    return {
        "images": len(store),
        "fields": "everyday" if fields is None else ", ".join(fields),
        "median_ms": round(statistics.median(times), 2),
        "p90_ms": round(times[int(0.9 * len(times))], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=[500, 2000, 8000])
    parser.add_argument("--store", type=Path, help="time this store instead of made ones")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        stores: list[RegionStore] = []
        if arguments.store:
            stores = [RegionStore.open(arguments.store)]
        else:
            for count in arguments.images:
                ids = [f"{number:06}" for number in range(count)]
                stores.append(write_store(Path(folder) / str(count), random_regions(count), ids, "random", {}))
        for store in stores:
            rows += [
                time_batches(store, arguments.batch, arguments.repeats, fields)
                for fields in (None, ("features", "objectness", "word_probs"))
            ]
    if arguments.json:
        print(json.dumps(rows))
    else:
        for row in rows:
            print("{images:>7} images  {median_ms:>7} ms median  {p90_ms:>7} ms p90  {fields}".format(**row))


if __name__ == "__main__":
    main()
