from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.errors import DeixisError
from deixis.serve.batcher import Batcher, FullError, LateError


class Gate:
    """A worker that stands still until it is let go, and remembers what came in each pass."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.begun = threading.Event()
        self.passes: list[tuple[Any, list[Any]]] = []

    def __call__(self, key: Any, payloads: Sequence[Any]) -> list[Any]:
        self.passes.append((key, list(payloads)))
        self.begun.set()
        assert self.open.wait(10)
        return [payload * 10 for payload in payloads]


def batcher(run: Any, **settings: Any) -> Batcher:
    return Batcher(run, **({"batch": 4, "pixels": 100, "places": 50, "bytes": 1000, "linger": 0.0} | settings))


def test_what_waits_is_answered_together_oldest_first() -> None:
    gate = Gate()
    worker = batcher(gate)
    jobs = [worker.submit("a", 0)]
    assert gate.begun.wait(10)
    jobs += [worker.submit(key, number) for number, key in enumerate("baabaaaa", 1)]
    assert worker.waiting == 8
    gate.open.set()
    assert [job.future.result(10) for job in jobs] == [0, 10, 20, 30, 40, 50, 60, 70, 80]
    assert gate.passes == [("a", [0]), ("b", [1, 4]), ("a", [2, 3, 5, 6]), ("a", [7, 8])]
    worker.close()
    assert not worker.alive


def test_large_photos_do_not_share_a_pass() -> None:
    gate = Gate()
    worker = batcher(gate)
    jobs = [worker.submit("a", 0)]
    assert gate.begun.wait(10)
    jobs += [worker.submit("a", number, pixels=pixels) for number, pixels in enumerate([500, 60, 60, 30], 1)]
    gate.open.set()
    for job in jobs:
        job.future.result(10)
    assert [payloads for _, payloads in gate.passes] == [[0], [1], [2, 4], [3]]
    worker.close()


def test_no_place_left_says_when_to_come_back() -> None:
    gate = Gate()
    worker = batcher(gate, places=2, bytes=10)
    worker.submit("a", 0)
    assert gate.begun.wait(10)
    worker.submit("a", 1, bytes=8)
    with pytest.raises(FullError, match="try again"):
        worker.submit("a", 2, bytes=3)  # too many bytes
    worker.submit("a", 2, bytes=2)
    with pytest.raises(FullError) as full:
        worker.submit("a", 3)  # too many jobs
    assert full.value.seconds >= 1
    gate.open.set()
    worker.close()


def test_a_job_beyond_its_deadline_is_never_begun() -> None:
    gate = Gate()
    worker = batcher(gate)
    first = worker.submit("a", 0)
    assert gate.begun.wait(10)
    late, withdrawn, good = (worker.submit("a", number, seconds=0.01 if number == 1 else 30) for number in (1, 2, 3))
    worker.withdraw(withdrawn)
    time.sleep(0.05)
    gate.open.set()
    assert good.future.result(10) == 30
    assert first.future.result(10) == 0
    with pytest.raises(LateError):
        late.future.result(10)
    assert withdrawn.future.cancelled()
    assert [payloads for _, payloads in gate.passes] == [[0], [3]]
    worker.close()


def test_one_bad_job_does_not_spoil_the_others() -> None:
    gate = Gate()

    def run(key: Any, payloads: Sequence[int]) -> list[int]:
        gate(key, payloads)
        if 2 in payloads:
            raise DeixisError("two cannot be done")
        return [DeixisError("nor three") if payload == 3 else payload for payload in payloads]  # type: ignore[misc]

    worker = batcher(run)
    jobs = [worker.submit("a", 0)]
    assert gate.begun.wait(10)
    jobs += [worker.submit("a", number) for number in (1, 2, 3)]
    gate.open.set()
    assert jobs[1].future.result(10) == 1
    for job, words in ((jobs[2], "two cannot be done"), (jobs[3], "nor three")):
        with pytest.raises(DeixisError, match=words):
            job.future.result(10)
    worker.close()


def test_a_bug_reaches_its_client_and_the_worker_goes_on() -> None:
    def run(key: Any, payloads: Sequence[int]) -> list[int]:
        if key == "bug":
            raise KeyError("oh")
        return list(payloads)

    worker = batcher(run)
    with pytest.raises(KeyError):
        worker.submit("bug", 0).future.result(10)
    assert worker.submit("a", 5).future.result(10) == 5
    worker.close()


def test_closing_refuses_what_waits() -> None:
    gate = Gate()
    worker = batcher(gate)
    running = worker.submit("a", 0)
    assert gate.begun.wait(10)
    waits = worker.submit("a", 1)
    threading.Timer(0.05, gate.open.set).start()
    worker.close()
    assert running.future.result(10) == 0
    with pytest.raises(FullError):
        waits.future.result(10)
    with pytest.raises(FullError):
        worker.submit("a", 2)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 120)), max_size=30), st.integers(1, 5))
def test_every_job_is_answered_once_within_the_limits(jobs: list[tuple[str, int]], most: int) -> None:
    seen: list[tuple[Any, list[tuple[int, int]]]] = []

    def run(key: Any, payloads: Sequence[tuple[int, int]]) -> list[int]:
        seen.append((key, list(payloads)))
        return [number for number, _ in payloads]

    worker = batcher(run, batch=most)
    queued = [worker.submit(key, (at, pixels), pixels=pixels) for at, (key, pixels) in enumerate(jobs)]
    assert [job.future.result(10) for job in queued] == list(range(len(jobs)))
    worker.close()
    assert sorted(number for _, payloads in seen for number, _ in payloads) == list(range(len(jobs)))
    for key, payloads in seen:
        assert len(payloads) <= most
        assert all(jobs[number][0] == key for number, _ in payloads)
        assert len(payloads) == 1 or sum(pixels for _, pixels in payloads) <= 100
    for name in "abc":  # nobody overtakes within a key, except past a photo too large for the pass
        order = [number for key, payloads in seen if key == name for number, _ in payloads]
        if all(pixels * most <= 100 for _, pixels in jobs):
            assert order == sorted(order)
