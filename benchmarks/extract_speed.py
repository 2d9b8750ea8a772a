"""How fast regions are extracted, in how much memory, and whether kills leave the same bytes.

    python benchmarks/extract_speed.py DATA [--split val] [--limit 200] [--kills 2] [--json]

Runs ``deixis regions extract`` on the photos of DATA, sampling the memory of all its processes. With --kills it then
extracts once more, kills that run with SIGKILL so many times on the way, lets it finish, and compares every file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from deixis.data import open_dataset
from deixis.types import ImageFile


def photo_folder(data: Path, split: str | None, limit: int | None, folder: Path) -> int:
    """Link the photos of a dataset into a folder, so that any number of them can be extracted."""
    dataset = open_dataset(data)
    names = dataset.ids(split)[:limit]
    folder.mkdir()
    for name in names:
        source = dataset[name].source
        assert isinstance(source, ImageFile)
        (folder / f"{name}{source.path.suffix}").symlink_to(source.path.resolve())
    return len(names)


def command(photos: Path, store: Path, arguments: argparse.Namespace) -> list[str]:
    return [sys.executable, "-m", "deixis", "regions", "extract", str(photos), "-o", str(store), "--json",
            "--extractor", arguments.extractor, "--processes", str(arguments.processes)]  # fmt: skip


def memory_of(process: psutil.Process) -> int:
    """Return the memory of a process and all below it; pages that several share are counted once."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_full_info().pss
        except psutil.Error:  # it has just ended
            continue
    return total


def run_timed(call: list[str]) -> dict[str, Any]:
    start, peak = time.perf_counter(), 0
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            peak = max(peak, memory_of(watched))
            time.sleep(0.5)
        assert process.stdout is not None
        out = process.stdout.read()
    if process.returncode:
        raise SystemExit(process.returncode)
    return {"seconds": time.perf_counter() - start, "peak_mb": peak / 2**20, **json.loads(out)}


def run_killed(call: list[str], store: Path, photos: int, kills: int) -> None:
    """Start the same extraction over and over, killing it each time when another share of the photos is done."""
    for number in range(1, kills + 1):
        process = subprocess.Popen(call, stdout=subprocess.DEVNULL, start_new_session=True)
        while process.poll() is None and finished(store) < photos * number / (kills + 1):
            time.sleep(0.05)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(call, check=True, stdout=subprocess.DEVNULL)


def finished(store: Path) -> int:
    return 4 * len(list(store.glob("parts/*.safetensors"))) + 256 * len(list(store.glob("*.safetensors")))


def hashes(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--split")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--extractor", default="lite")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        photos = Path(folder) / "photos"
        count = photo_folder(arguments.data, arguments.split, arguments.limit, photos)
        result = run_timed(command(photos, Path(folder) / "whole", arguments))
        result["images_per_second"] = count / result["seconds"]
        if arguments.kills:
            store = Path(folder) / "killed"
            run_killed(command(photos, store, arguments), store, count, arguments.kills)
            result["kills"] = arguments.kills
            result["identical_after_kills"] = hashes(store) == hashes(Path(folder) / "whole")
        result.pop("store")
    if arguments.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key:22}{value:.2f}" if isinstance(value, float) else f"{key:22}{value}")


if __name__ == "__main__":
    main()
