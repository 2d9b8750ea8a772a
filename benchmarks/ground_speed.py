"""How long people wait: ten phrases against the regions they are looked for in, a warm answer, the first of a process.

    python -m benchmarks.ground_speed [--model lite] [--grounder RUN] [--photo FILE]

Times are medians on the threads torch takes by itself (or ``OMP_NUM_THREADS``). Processor time stands beside them: on a
busy machine it is the honest figure.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PHOTO = Path(__file__).parents[1] / "examples" / "photos" / "astronaut.jpg"
PHRASES = (
    "a smiling woman", "an orange suit", "a helmet", "a flag", "a face",
    "brown hair", "a space shuttle", "a red patch", "a hand", "the wall behind her",
)  # fmt: skip


def main() -> int:
    """Print a table of what was measured beside what was asked for."""
    parser = argparse.ArgumentParser(description="Waiting times.")
    parser.add_argument("--model", default="lite")
    parser.add_argument("--grounder")
    parser.add_argument("--photo", type=Path, default=PHOTO)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    wall, processor = first_answer(options)

    from deixis import load

    model = load(options.model, grounder=options.grounder)
    seen = model.regions([options.photo])[0]
    regions = median(lambda: model.regions([options.photo]), options.repeats)
    phrases = median(lambda: model.ground(seen, PHRASES), options.repeats)
    caption = median(lambda: model.caption(seen), options.repeats)

    def answer() -> None:
        found = model.regions([options.photo])[0]
        caption = model.caption(found)
        model.ground(found, sentence=caption.text)

    warm = median(answer, options.repeats)
    rows = [
        ("regions of the photo", *regions, ""),
        ("ten phrases, regions aside", *phrases, "at most 50 ms"),
        ("caption by beam search, regions aside", *caption, ""),
        ("warm answer: regions, caption, its phrases", *warm, "at most 300 ms"),
        ("first answer of a fresh process", wall, processor, "at most 3000 ms"),
    ]
    print(f"{'':<44}{'waiting':>10}{'processor':>12}  asked of waiting")
    for name, waited, worked, asked in rows:
        print(f"{name:<44}{1000 * waited:>7.0f} ms{1000 * worked:>9.0f} ms  {asked}")
    print(f"{'ten phrases, in times of the regions':<44}{phrases[0] / regions[0]:>10.2f}")
    return 0


def median(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return the median seconds and processor seconds of a call, after two that warm up."""
    took, worked = [], []
    for _ in range(repeats + 2):
        began, busy = time.perf_counter(), time.process_time()
        work()
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - busy)
    return statistics.median(took[2:]), statistics.median(worked[2:])


def first_answer(options: argparse.Namespace) -> tuple[float, float]:
    """Return seconds and processor seconds of ``deixis caption PHOTO``, the best of three."""
    command = [sys.executable, "-m", "deixis", "caption", str(options.photo), "--model", options.model, "--json"]
    command += ["--grounder", options.grounder] if options.grounder else []
    took = []
    for _ in range(3):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append((wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return min(took)


if __name__ == "__main__":
    sys.exit(main())
