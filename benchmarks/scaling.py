"""Strong and weak scaling of training: what a step of several processes costs beside one of a single process.

    python -m benchmarks.scaling [--processes 1 2] [--batch 16] [--steps 12] [--width 512] [--json]

*Strong*: the batch stays the same, so the work of one process shrinks. *Weak*: the batch grows with the processes, so
the work of each stays the same. Drawn scenes with random regions of real size (36 and the whole photo, 512 features)
train a captioner by ``deixis train --processes N --threads 1``. The first steps are left out. Printed are captions a
second by the clock, which needs as many idle cores as processes to mean anything, and processor milliseconds a caption
over all processes, which holds on a busy machine too: what it is above that of one process is the price of the others
(exchanging gradients, optimizer steps done by every process, smaller batches). The number of processes is read from the
run's own state.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch

from deixis.data.open import open_dataset
from deixis.data.scenes import make_scenes
from deixis.models.checkpoint import load_weights
from deixis.regions.store.writer import write_store
from deixis.training.run import Run
from deixis.training.state import RunState
from deixis.types import Regions

REGIONS, FEATURES = 36, 512
WARM_UP = 3
"""Steps that are not counted."""
RECIPE = """
about: {{title: A captioner that is timed}}
data: {{dataset: {scenes}, store: {store}, regions: {regions}, validation: null, min_count: 1, parse: false}}
model: {{kind: captioner, width: {width}}}
stages:
  - {{name: words, epochs: {epochs}, batch: {batch}, objectives: [cross_entropy]}}
precision: float32
log_every: 1
"""


def random_regions(ids: Sequence[str]) -> Iterator[tuple[str, Regions]]:
    """Regions as large as real ones, of nothing."""
    rng = torch.Generator().manual_seed(0)
    for name in ids:
        corner = torch.rand(REGIONS + 1, 2, generator=rng) * 200
        features = torch.randn(REGIONS + 1, FEATURES, generator=rng)
        yield (
            name,
            Regions(
                boxes=torch.cat([corner, corner + 20], 1),
                features=features,
                objectness=torch.rand(REGIONS + 1, generator=rng),
                size=(320, 240),
                fingerprint="random",
                global_features=features[-1:],
            ),
        )


def measure(folder: Path, kind: str, processes: int, batch: int, steps: int, width: int, photos: int) -> dict[str, Any]:
    """Train for some steps and tell what a caption cost."""
    run, recipe = folder / f"{kind}-{processes}", folder / f"{kind}-{processes}.yaml"
    epochs = -(-(WARM_UP + steps) * batch // photos)
    known = {"scenes": folder / "scenes", "store": folder / "store", "regions": REGIONS}
    recipe.write_text(RECIPE.format(**known, width=width, batch=batch, epochs=epochs))
    command = [sys.executable, "-m", "deixis", "train", str(recipe), "-o", str(run), "--processes", str(processes)]
    command += ["--threads", "1", "--no-tensorboard", "--json"]
    began = ended = (0, 0.0, 0.0)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            done, used = steps_done(run), processor_seconds(process.pid)
            if done >= WARM_UP and not began[0]:
                began = (done, time.monotonic(), used)
            if began[0] and done > max(began[0], ended[0]) and used >= began[2]:
                ended = (done, time.monotonic(), used)
            time.sleep(0.02)
        assert process.stderr is not None
        if process.returncode or ended[0] <= began[0]:
            raise SystemExit(f"scaling: no steps were seen: {process.stderr.read()[-2000:]}")
    last = Run(run).pointer("last")
    assert last is not None
    came = RunState.load(last).processes
    if came != processes:
        raise SystemExit(f"scaling: {processes} processes were asked for, {came} trained")
    captions = (ended[0] - began[0]) * batch * captions_a_photo(folder / "scenes")
    parameters = sum(value.numel() for value in load_weights(last).values())
    return {
        "kind": kind,
        "processes": came,
        "batch": batch,
        "steps": ended[0] - began[0],
        "captions_per_second": captions / (ended[1] - began[1]),
        "processor_ms_per_caption": 1000 * (ended[2] - began[2]) / captions,
        "parameters": parameters,
        "gradient_megabytes": 4 * parameters / 1e6,
    }


def steps_done(run: Path) -> int:
    """Return how many steps a run has logged."""
    if not (run / "metrics.jsonl").is_file():
        return 0
    return max((int(entry["step"]) for entry in Run(run).entries() if "loss" in entry), default=0)


def processor_seconds(process: int) -> float:
    """Return what a process and its children have used so far."""
    try:
        first = psutil.Process(process)
        times = [one.cpu_times() for one in (first, *first.children(recursive=True))]
    except psutil.NoSuchProcess:
        return 0.0
    return float(sum(one.user + one.system for one in times))


def captions_a_photo(scenes: Path) -> int:
    """Return how many captions every scene has."""
    dataset = open_dataset(scenes)
    return len(dataset[dataset.ids("train")[0]].captions)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print every row beside the first."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="begins with what others are held to")
    parser.add_argument("--batch", type=int, default=16, help="photos a step of one process")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--photos", type=int, default=128, help="scenes to draw; a batch must divide them to be full")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="deixis-scaling-") as place:
        folder = Path(place)
        make_scenes(folder / "scenes", {"train": options.photos})
        ids = list(open_dataset(folder / "scenes").ids("train"))
        write_store(folder / "store", random_regions(ids), ids, "random", {"regions": REGIONS})
        first, *more = options.processes
        plan = [("one" if first == 1 else "first", first, options.batch)]
        plan += [("strong", count, options.batch) for count in more]
        plan += [("weak", count, options.batch * count // first) for count in more]
        for kind, count, batch in plan:
            row = measure(folder, kind, count, batch, options.steps, options.width, options.photos)
            rows.append(row | beside(row, rows[0] if rows else row))
            if not options.json:
                print(_line(rows[-1]), flush=True)
    if options.json:
        print(json.dumps(rows))


def beside(row: dict[str, Any], first: dict[str, Any]) -> dict[str, float]:
    """Return the ratios to the first row: how much quicker by the clock, and how much dearer in processor time."""
    return {
        "speed_up": row["captions_per_second"] / first["captions_per_second"],
        "price": row["processor_ms_per_caption"] / first["processor_ms_per_caption"],
    }


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['kind']:>6}: {row['processes']} processes, {row['batch']} photos a step, {row['steps']} steps: "
        f"{row['captions_per_second']:.0f} captions a second ({row['speed_up']:.2f} times), "
        f"{row['processor_ms_per_caption']:.1f} processor ms a caption ({row['price']:.2f} times); "
        f"{row['gradient_megabytes']:.0f} MB of gradients a step"
    )


if __name__ == "__main__":
    main()
