"""Damaged and hostile files against everything that reads a user's file: tracebacks, over 2 s, over 500 MB.

    python -m benchmarks.fuzz [--inputs 2000] [--seed 0] [--only NAME ...] [--keep FOLDER] [--json]

Every input is made from its seed, its target and its number, so a run can be repeated; ``--keep`` writes the files of
inputs that went wrong. Seconds are those of the processor, so a busy machine does not count against us. Linux only. The
exit code is 1 where anything went wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.fuzz.harness import LARGE, SLOW, Outcome, Target, fuzz
from benchmarks.fuzz.targets import TARGETS


def shares(targets: Sequence[Target], inputs: int) -> dict[str, int]:
    """Divide inputs among targets by their weights; each has at least one."""
    total = sum(target.weight for target in targets)
    return {target.name: max(1, round(inputs * target.weight / total)) for target in targets}


def row(name: str, outcomes: Sequence[Outcome]) -> dict[str, str | int | float]:
    """Return what is reported of a target."""
    kinds = Counter(outcome.kind for outcome in outcomes)
    return {
        "target": name,
        "inputs": len(outcomes),
        "read": kinds["read"],
        "refused": kinds["refused"],
        "tracebacks": kinds["traceback"],
        "hangs": kinds["hang"],
        "slow": sum(outcome.seconds > SLOW for outcome in outcomes),
        "large": sum(outcome.bytes > LARGE for outcome in outcomes),
        "most_seconds": round(max((outcome.seconds for outcome in outcomes), default=0.0), 2),
        "most_mb": round(max((outcome.bytes for outcome in outcomes), default=0) / 2**20),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help=f"of {', '.join(target.name for target in TARGETS)}")
    parser.add_argument("--keep", type=Path, help="folder for the files of inputs that went wrong")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    chosen = [target for target in TARGETS if not options.only or target.name in options.only]
    if not chosen:
        parser.error(f"there is no target {', '.join(options.only)}")
    torch.set_num_threads(1)  # before processes are forked: threads do not follow them
    began = time.monotonic()
    rows, wrong = [], []
    for target in chosen:
        outcomes = list(fuzz(target, shares(chosen, options.inputs)[target.name], options.seed, options.keep))
        rows.append(row(target.name, outcomes))
        wrong += [outcome for outcome in outcomes if outcome.wrong]
        if not options.json:
            print(" ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    result = {"inputs": sum(int(one["inputs"]) for one in rows), "wrong": len(wrong), "seed": options.seed,
              "seconds": round(time.monotonic() - began, 1), "targets": rows}  # fmt: skip
    if options.json:
        print(json.dumps(result))
    else:
        print(f"{result['inputs']} inputs in {result['seconds']} s: {len(wrong)} went wrong")
    for outcome in list({outcome.detail or outcome: outcome for outcome in wrong}.values())[:20]:
        cost = f"{outcome.seconds:.1f} s, {outcome.bytes / 2**20:.0f} MB"
        print(f"{outcome.target} {outcome.index}: {outcome.kind}, {cost}\n{outcome.detail}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
