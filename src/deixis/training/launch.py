"""Several processes that train together on this machine: started, counted, watched, and ended together.

``deixis train --processes N`` starts N copies of the command. They find each other by the environment that torchrun
sets too, so the same command works under torchrun on many machines. A launcher that starts fewer than it was asked for
(accelerate's ``--cpu`` without a cluster starts one) is noticed: nobody should wait for a night on half of the machine.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO

from deixis.errors import DeixisError, LostProcessError

PATIENCE = 1.0
"""Seconds the others have to fail by themselves when one has: what is wrong for one is often wrong for all."""
GRACE = 20.0
"""Seconds the others have to save and leave when one process has ended badly."""
PARENT = "DEIXIS_LAUNCHER"
"""Names the pipe by which a process notices that its launcher is gone."""


def is_launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is one of several that a launcher (ours, torchrun, SLURM's) has started."""
    return "WORLD_SIZE" in environment


def require_processes(asked: int | None, came: int, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse to train with another number of processes than was asked for.

    Args:
        asked: What ``--processes`` says; None where the number is left to the launcher.
        came: How many train together.
        environment: Where launchers say how many they mean to start.
    """
    said = environment.get("WORLD_SIZE", "")
    expected = asked if asked is not None else int(said) if said.isdigit() else came
    if came != expected:
        raise DeixisError(
            f"{expected} processes were asked for, but {came} came: start them with --processes {expected}, "
            f"or with torchrun --nproc_per_node {expected} -m deixis train …"
        )
    if asked is None and came == 1 and not said and "MASTER_PORT" in environment:
        raise DeixisError(
            "a launcher named a place to meet (MASTER_PORT) but started this process alone, as accelerate launch --cpu "
            "does: use --processes N instead, or say --processes 1 if one is meant"
        )


def launch(arguments: Sequence[str], processes: int) -> int:
    """Run ``deixis ARGUMENTS`` in several processes that train together; return the exit code of the first that failed.

    Signals go on to all of them. When one ends badly, the others are asked to leave, and ended if they do not.
    """
    with tempfile.TemporaryDirectory(prefix="deixis-") as folder, _Group(folder) as group:
        group.start([sys.executable, "-m", "deixis", *arguments], processes)
        with _passing_on(group):
            failed = group.wait()
        if failed is None:
            return 0
        return group.explain(failed)


class _Group:
    """The processes of one launch. The first one writes to our stderr, the others into files that are shown on need."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.members: list[subprocess.Popen[bytes]] = []
        self._errors: list[IO[bytes]] = []
        self._read, self._write = os.pipe()  # never written to: it closes when this process ends, however it ends

    def __enter__(self) -> _Group:
        return self

    def __exit__(self, *_: object) -> None:
        self.send(signal.SIGKILL)
        for member in self.members:
            member.wait()
        for file in self._errors:
            file.close()
        os.close(self._read)
        os.close(self._write)

    def start(self, command: Sequence[str], processes: int) -> None:
        """Start all members, each with its rank in the environment."""
        shared = {
            "WORLD_SIZE": str(processes),
            "LOCAL_WORLD_SIZE": str(processes),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(_free_port()),
            PARENT: str(self._read),
        }
        if sys.platform == "linux":
            shared["GLOO_SOCKET_IFNAME"] = os.environ.get("GLOO_SOCKET_IFNAME", "lo")
        if "OMP_NUM_THREADS" not in os.environ:  # as many threads as cores in every process would be far too many
            shared["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // processes))
        for rank in range(processes):
            environment = {**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            errors = None
            if rank > 0:
                errors = open(os.path.join(self.folder, f"{rank}.err"), "w+b")  # noqa: SIM115 (closed in __exit__)
                self._errors.append(errors)
            out = None if rank == 0 else subprocess.DEVNULL
            member = subprocess.Popen(
                command, env=environment, stdout=out, stderr=errors, stdin=subprocess.DEVNULL, pass_fds=(self._read,)
            )
            self.members.append(member)

    def send(self, number: int) -> None:
        """Send a signal to all members that still run."""
        for member in self.members:
            if member.poll() is None:
                member.send_signal(number)

    def wait(self) -> int | None:
        """Wait for all; return the rank of the member that failed first, or None."""
        failed, told, since = None, False, float("inf")
        while any(member.poll() is None for member in self.members):
            waited = time.monotonic() - since
            if failed is None:
                failed = self._failed()
                since = since if failed is None else time.monotonic()
            elif waited > PATIENCE + GRACE:
                self.send(signal.SIGKILL)
            elif waited > PATIENCE and not told:
                self.send(signal.SIGTERM)
                told = True
            time.sleep(0.05)
        return self._cause(self._failed() if failed is None else failed)

    def _failed(self) -> int | None:
        """Return a member that has failed; one that was killed is more likely the cause than one that complains."""
        codes = {rank: code for rank, member in enumerate(self.members) if (code := member.poll())}
        return min(codes, key=lambda rank: (codes[rank] > 0, rank), default=None)

    def _cause(self, failed: int | None) -> int | None:
        """Return who failed by itself, where the first that was seen to fail had only lost it."""
        if failed is None or self.members[failed].returncode != LostProcessError.exit_code:
            return failed
        own = (rank for rank, member in enumerate(self.members) if member.returncode == DeixisError.exit_code)
        return next(own, failed)

    def explain(self, rank: int) -> int:
        """Say what the failed member said, where it could not be seen, and return the exit code of it all."""
        code = self.members[rank].returncode
        if code < 0:
            raise DeixisError(
                f"process {rank} of {len(self.members)} was ended by {signal.Signals(-code).name} (perhaps out of "
                "memory), so the others were stopped: everything up to the last checkpoint is kept, go on with --resume"
            )
        if rank > 0 and not code == self.members[0].returncode == DeixisError.exit_code:  # else it was said already
            file = self._errors[rank - 1]
            file.seek(0)
            sys.stderr.write(file.read()[-20_000:].decode(errors="replace"))
        return DeixisError.exit_code if code == LostProcessError.exit_code else code


@contextmanager
def _passing_on(group: _Group) -> Iterator[None]:
    """Pass SIGTERM on to the group. Ctrl-C reaches it by itself; here it must only not end the waiting."""

    def handle(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            group.send(number)

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_with_launcher() -> None:
    """Save and leave when the launcher of this process is gone, even if it was killed and could not say so."""
    pipe = os.environ.get(PARENT)
    if pipe is None:
        return

    def watch(handle: int) -> None:
        try:
            os.read(handle, 1)
        except OSError:
            return
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, args=(int(pipe),), daemon=True).start()


@contextmanager
def naming_the_lost() -> Iterator[None]:
    """Turn what the network says when another process of the run is gone into an error that says so."""
    try:
        yield
    except RuntimeError as error:
        lost = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket closed")
        if not any(words in str(error) for words in lost):
            raise
        raise LostProcessError(
            "another process of this run has ended: everything up to the last checkpoint is kept, go on with --resume"
        ) from error


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
