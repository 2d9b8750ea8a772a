"""A queue with one worker thread that answers what waits in as few passes as possible.

While the worker is busy, requests wait; when it comes back it takes the oldest and everything that can be answered in
the same pass with it. Nothing waits for company that may never come, except for a moment after a pass of several:
clients that were just answered tend to ask again at once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from deixis.errors import DeixisError


class FullError(Exception):
    """No place is free; ``seconds`` is when to try again."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no place is free, try again in {seconds:.0f} s")
        self.seconds = seconds


class LateError(Exception):
    """A job waited beyond its deadline and was never begun."""


@dataclass(slots=True, eq=False)
class Job:
    """Something to be answered; jobs with equal keys may share a pass."""

    key: Hashable
    payload: Any
    pixels: int
    bytes: int
    deadline: float
    future: Future[Any] = field(default_factory=Future)


Run = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""Answers payloads of one key, in order; an exception in place of an answer belongs to that payload alone."""


class Batcher:
    """Runs jobs in batches on a thread of its own.

    Args:
        run: Called with a key and the payloads of a batch.
        batch: Jobs in a pass at most.
        pixels: Pixels in a pass at most (a single larger job runs alone).
        places: Jobs that may wait.
        bytes: What waiting jobs may take together.
        linger: Seconds to wait for company after a pass of several jobs.
        watch: Told the size and duration of each pass.
    """

    def __init__(
        self,
        run: Run,
        *,
        batch: int,
        pixels: int,
        places: int,
        bytes: int,
        linger: float = 0.005,
        watch: Callable[[int, float], None] | None = None,
        name: str = "deixis-worker",
    ) -> None:
        self._run, self._watch = run, watch
        self._batch, self._pixels, self._places, self._bytes, self._linger = batch, pixels, places, bytes, linger
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._open = True
        self._pace = 0.1  # seconds per job, a running mean: what Retry-After is reckoned from
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Jobs that have not begun."""
        return len(self._jobs)

    @property
    def alive(self) -> bool:
        """Whether the worker is there."""
        return self._thread.is_alive()

    def submit(self, key: Hashable, payload: Any, *, pixels: int = 0, bytes: int = 0, seconds: float = 30.0) -> Job:
        """Queue a job that must begin within ``seconds``; raises :class:`FullError` if there is no place for it."""
        job = Job(key, payload, pixels, bytes, time.monotonic() + seconds)
        with self._changed:
            held = sum(other.bytes for other in self._jobs)
            if not self._open or len(self._jobs) >= self._places or (self._jobs and held + bytes > self._bytes):
                raise FullError(max(1.0, self._pace * len(self._jobs)))
            self._jobs.append(job)
            self._changed.notify_all()
        return job

    def withdraw(self, job: Job) -> None:
        """Forget a job nobody waits for any more; one that has begun runs to its end."""
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)
        job.future.cancel()

    def close(self) -> None:
        """Finish the running pass, refuse the jobs that wait, and end the thread."""
        with self._changed:
            self._open = False
            left, self._jobs = list(self._jobs), deque()
            self._changed.notify_all()
        for job in left:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(FullError(1.0))
        self._thread.join(timeout=10)

    def _work(self) -> None:
        last = 1
        while True:
            jobs = self._take(last)
            if jobs is None:
                return
            if not jobs:
                continue
            last = len(jobs)
            began = time.monotonic()
            self._answer(jobs)
            spent = time.monotonic() - began
            self._pace += 0.2 * (spent / len(jobs) - self._pace)
            if self._watch is not None:
                self._watch(len(jobs), spent)

    def _take(self, hoped: int) -> list[Job] | None:
        """Return the jobs of the next pass; None when closed."""
        with self._changed:
            while self._open and not self._jobs:
                self._changed.wait()
            if not self._open:
                return None
            if len(self._jobs) < min(hoped, self._batch):
                self._changed.wait_for(lambda: not self._open or len(self._jobs) >= hoped, timeout=self._linger)
            if not self._jobs:
                return []
            first = self._jobs[0]
            taken: list[Job] = []
            kept: deque[Job] = deque()
            pixels = 0
            for job in self._jobs:
                fits = not taken or (len(taken) < self._batch and pixels + job.pixels <= self._pixels)
                if job.key == first.key and fits:
                    taken.append(job)
                    pixels += job.pixels
                else:
                    kept.append(job)
            self._jobs = kept
        return [job for job in taken if self._begun(job)]

    @staticmethod
    def _begun(job: Job) -> bool:
        """Mark a job as running; one that was cancelled or came too late is not."""
        if not job.future.set_running_or_notify_cancel():
            return False
        if time.monotonic() > job.deadline:
            job.future.set_exception(LateError())
            return False
        return True

    def _answer(self, jobs: Sequence[Job]) -> None:
        try:
            answers = self._run(jobs[0].key, [job.payload for job in jobs])
        except Exception as error:
            # One photo that cannot be answered must not spoil the others: they are answered one by one.
            if len(jobs) > 1 and isinstance(error, DeixisError | ValueError | RuntimeError):
                for job in jobs:
                    self._answer([job])
                return
            for job in jobs:
                job.future.set_exception(error)
            return
        for job, answer in zip(jobs, answers, strict=True):
            if isinstance(answer, Exception):
                job.future.set_exception(answer)
            else:
                job.future.set_result(answer)
