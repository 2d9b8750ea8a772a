"""Kill commands and see whether they go on.

    python -m benchmarks.kills points                    # a kill before every file operation of every command
    python -m benchmarks.kills points train --limit 20   # before 20 of them, spread evenly
    python -m benchmarks.kills random --kills 100        # at random moments, by SIGKILL and SIGTERM

Prints one JSON line for each command, and leaves with 1 if anything was lost. Needs Linux or macOS (it forks).
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from benchmarks.kills.subjects import Subject, fresh, left_over, make_data, subjects
from benchmarks.kills.victim import kill_after, run, start, wait


@dataclass(slots=True)
class Found:
    """What came of killing one command."""

    command: str
    points: int = 0
    """File operations it does when nobody disturbs it."""
    kills: int = 0
    """How many landed; the others came after the command was done."""
    cannot_resume: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    leaves_behind: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost."""
        return not (self.cannot_resume or self.differs or self.leaves_behind)


def at_every_point(name: str, subject: Subject, room: Path, limit: int | None) -> Found:
    """Kill a command before each of its file operations in turn, and let it go on."""
    whole = fresh(room / "whole", subject)
    code, points = run(subject.arguments(whole), whole)
    if code:
        raise SystemExit(f"{name} fails undisturbed: {(room / 'last.log').read_text()[-2000:]}")
    expected, found = subject.result(whole), Found(name, points)
    chosen = range(points) if limit is None or limit >= points else [at * points // limit for at in range(limit)]
    for point in chosen:
        folder = fresh(room / "cut", subject)
        code, _ = run(subject.arguments(folder), folder, fatal=point)
        found.kills += code == -signal.SIGKILL
        _go_on(f"point {point}", subject, folder, expected, found)
    return found


def at_random(name: str, subject: Subject, room: Path, kills: int, seed: int) -> Found:
    """Kill a command at random moments, every fourth resume too, and let it go on."""
    draw = random.Random(f"{name} {seed}")
    whole = fresh(room / "whole", subject)
    began = time.monotonic()
    code, points = run(subject.arguments(whole), whole)
    took = time.monotonic() - began
    if code:
        raise SystemExit(f"{name} fails undisturbed: {(room / 'last.log').read_text()[-2000:]}")
    expected, found = subject.result(whole), Found(name, points)
    for number in range(kills):
        folder = fresh(room / "cut", subject)
        for _ in range(2 if number % 4 == 3 else 1):
            sent = draw.choice((signal.SIGKILL, signal.SIGTERM))
            code = kill_after(start(subject.arguments(folder), folder), draw.uniform(0.05, took), sent)
            found.kills += code != 0
        _go_on(f"kill {number}", subject, folder, expected, found)
    return found


def _go_on(what: str, subject: Subject, folder: Path, expected: Mapping[str, object], found: Found) -> None:
    if wait(start(subject.arguments(folder), folder)):
        last = (folder.parent / "last.log").read_text().strip().splitlines()[-1:]
        found.cannot_resume.append(f"{what}: {' '.join(last)}")
    elif other := differing(subject.result(folder), expected):
        found.differs.append(f"{what}: {', '.join(other)}")
    found.leaves_behind += [f"{what}: {name}" for name in left_over(folder)]


def differing(one: Mapping[str, object], two: Mapping[str, object]) -> list[str]:
    """Return the names of what only one result has, or what is not the same in both."""
    return sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, print, and return 1 if anything was lost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__.split("\n")[0])
    parser.add_argument("moments", choices=["points", "random"])
    parser.add_argument("commands", nargs="*", help="which commands; all if none is named")
    parser.add_argument("--limit", type=int, help="points: at most so many of each command")
    parser.add_argument("--kills", type=int, default=100, help="random: so many, shared by the commands")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # threads do not survive a fork
    with tempfile.TemporaryDirectory(prefix="deixis-kills-") as place:
        room = Path(place)
        make_data(room / "data")
        known = subjects(room / "data")
        names = options.commands or list(known)
        unknown = [name for name in names if name not in known]
        if unknown:
            parser.error(f"unknown command {unknown[0]!r}: there are {', '.join(known)}")
        shares = Counter(names[at % len(names)] for at in range(options.kills))
        clean = True
        for name in names:
            if options.moments == "points":
                found = at_every_point(name, known[name], room, options.limit)
            else:
                found = at_random(name, known[name], room, shares[name], options.seed)
            clean &= found.is_clean
            print(json.dumps(asdict(found)), flush=True)
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
