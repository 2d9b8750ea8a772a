"""One input after the other in a process of its own, which is measured and, where it hangs, ended."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import random
import resource
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.fuzz.mutate import damaged
from deixis.errors import DeixisError

SLOW, LARGE = 2.0, 500 * 2**20
"""Seconds of the processor, and bytes more than before, above which an input counts against us."""
HANG = 120.0
"""Seconds of silence after which a process is ended: a busy machine takes its time."""
ROOM = 6 * 2**30
"""What a process may take beyond what it begins with, so that a bomb does not take the machine down."""

Rng = random.Random


@dataclass(frozen=True)
class Target:
    """Something that reads files: how good ones are made, how they are read, and which of them are damaged."""

    name: str
    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    mend: Callable[[Path, Rng], None] | None = None
    """Makes checksums right again after the damage, now and then: what somebody does who means it."""
    spare: tuple[str, ...] = ()
    """Endings of files that are left whole."""
    weight: float = 1.0


@dataclass(frozen=True)
class Outcome:
    """What came of one input."""

    target: str
    index: int
    kind: str
    """``read``, ``refused``, ``traceback`` or ``hang``."""
    seconds: float = 0.0
    bytes: int = 0
    detail: str = ""

    @property
    def wrong(self) -> bool:
        """Whether it counts against us."""
        return self.kind in ("traceback", "hang") or self.seconds > SLOW or self.bytes > LARGE


def fuzz(target: Target, count: int, seed: int, keep: Path | None = None) -> Iterator[Outcome]:
    """Yield what comes of ``count`` inputs; a process that hangs or dies is replaced and goes on after that input."""
    context = multiprocessing.get_context("fork")
    first = 0
    while first < count:
        ours, theirs = context.Pipe(duplex=False)
        with tempfile.TemporaryDirectory(prefix="deixis-fuzz-") as made:  # ours: a worker that is killed leaves its own
            worker = context.Process(target=_work, args=(target, range(first, count), seed, keep, Path(made), theirs))
            worker.start()
            theirs.close()
            try:
                for index in range(first, count):
                    outcome = _next(ours, target.name, index)
                    yield outcome
                    first = index + 1
                    if outcome.kind == "hang":
                        break
            finally:
                worker.kill()
                worker.join()
                ours.close()


def _next(connection: Connection, name: str, index: int) -> Outcome:
    try:
        if connection.poll(HANG):
            outcome: Outcome = connection.recv()
            return outcome
        return Outcome(name, index, "hang", HANG, 0, f"no answer within {HANG:.0f} s")
    except EOFError:
        return Outcome(name, index, "hang", 0.0, 0, "the process died")


def _work(target: Target, inputs: Iterable[int], seed: int, keep: Path | None, made: Path, answers: Connection) -> None:
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        folder = made / "good"
        folder.mkdir()
        target.make(folder)
        _limit_memory()
        good = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                target.read(folder)
            fault = ""
        except BaseException:
            fault = "the undamaged files are not read: " + traceback.format_exc(limit=-6)
        _restore(folder, good)
        for index in inputs:
            outcome = one(target, folder, good, index, seed)
            if fault:  # then the rest would prove nothing
                outcome = Outcome(target.name, index, "traceback", detail=fault)
            if outcome.wrong and keep is not None:
                _keep(keep / f"{target.name}-{index}", folder)
            _restore(folder, good)
            answers.send(outcome)


def one(target: Target, folder: Path, good: dict[Path, bytes], index: int, seed: int) -> Outcome:
    """Damage a file, read it, and tell what came of it."""
    rng = random.Random(f"{seed} {target.name} {index}")
    files = [path for path in good if not path.name.endswith(target.spare)] if target.spare else list(good)
    for path in rng.sample(files, min(len(files), rng.choice((1, 1, 1, 2)))):
        path.write_bytes(damaged(good[path], rng, name=path.name))
    if target.mend is not None and rng.random() < 0.7:
        with contextlib.suppress(Exception):  # damaged too far for checksums to matter
            target.mend(folder, rng)
    before = _start_peak()
    began = time.process_time()
    kind, detail = "read", ""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            target.read(folder)
    except (DeixisError, OSError) as error:  # the command line prints both in one line
        kind, detail = "refused", str(error)
    except SystemExit as error:
        kind = "read" if error.code in (0, None) else "refused"
    except BaseException:
        kind, detail = "traceback", traceback.format_exc(limit=-6)
    return Outcome(target.name, index, kind, time.process_time() - began, max(0, _peak() - before), detail)


def _restore(folder: Path, good: dict[Path, bytes]) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path in one.parents for one in good):
            with contextlib.suppress(OSError):
                path.rmdir()
        elif path not in good and not path.is_dir():
            path.unlink()
    for path, data in good.items():
        if not path.is_file() or path.read_bytes() != data:  # a file left alone keeps its time: an index looks at it
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def _keep(target: Path, folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            place = target / path.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))


def _start_peak() -> int:
    """Forget the largest size of this process so far, and return its size now."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
