"""A command in a forked process that is killed: before its n-th file operation, or after some time.

The parent has imported everything already, so a victim starts at once. File operations are seen by an audit hook: each
opening for writing, renaming, removing, making and cutting of anything below a folder is one point. What is written
inside an open file is not seen; kills at random moments are for that.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink")


class Operations:
    """Counts file operations below a folder; kills its own process just before the one with a given number."""

    def __init__(self, folder: Path, fatal: int | None) -> None:
        self.folder, self.fatal = os.path.abspath(folder), fatal
        self.count = 0

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        """Take an audit event of Python."""
        changes = event in _CHANGES
        if event == "open":
            flags = arguments[2]
            changes = isinstance(flags, int) and bool(flags & _WRITES)
        if not changes or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        if os.path.abspath(os.fsdecode(arguments[0])).startswith(self.folder):
            if self.count == self.fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            self.count += 1


def run(arguments: Sequence[str], folder: Path, fatal: int | None = None) -> tuple[int, int]:
    """Run ``deixis ARGUMENTS`` in a fork; return its exit code (negative for a signal) and its file operations."""
    read, write = os.pipe()
    child = start(arguments, folder, fatal, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        counted = pipe.read()
    code = wait(child)
    return code, int(counted) if counted else -1


def start(arguments: Sequence[str], folder: Path, fatal: int | None = None, tell: int | None = None) -> int:
    """Fork and run; return the process number."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.environ["DEIXIS_HOME"] = str(folder / "home")
        log = os.open(folder.parent / "last.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        operations = Operations(folder, fatal)
        sys.addaudithook(operations)
        from deixis.cli.main import main

        try:
            main(list(arguments))
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 0
        if tell is not None:
            os.write(tell, str(operations.count).encode())
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def wait(child: int) -> int:
    """Wait for a process and return its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_after(child: int, seconds: float, number: int) -> int:
    """Send a signal after some time, if the process still runs; return its exit code."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, number)
    return wait(child)
