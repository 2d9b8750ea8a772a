"""Tasks on an engine: the same results everywhere, in order, whatever dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from deixis.engines import run_tasks
from deixis.errors import DeixisError


class Squares:
    """A worker that says in which process it worked; some numbers are refused."""

    def __init__(self, refused: int | None = None) -> None:
        self.refused = refused

    def __call__(self, number: int) -> tuple[int, int]:
        if number == self.refused:
            raise DeixisError(f"{number} is not liked here")
        return number * number, os.getpid()


class Broken:
    """A worker that cannot be made."""

    def __init__(self) -> None:
        raise DeixisError("this machine has no weights")

    def __call__(self, number: int) -> int:
        return number


class Meeting(Squares):
    """Squares whose tasks wait until so many workers have begun: on a busy machine one may do all before that.

    One task is slower than the others.
    """

    def __init__(self, place: str, workers: int, slow: int) -> None:
        super().__init__()
        self.place, self.workers, self.slow = Path(place), workers, slow

    def __call__(self, number: int) -> tuple[int, int]:
        (self.place / str(os.getpid())).touch()
        end = time.monotonic() + PATIENCE
        while len(list(self.place.iterdir())) < self.workers and time.monotonic() < end:
            time.sleep(0.02)
        if number == self.slow:
            time.sleep(0.5)
        return super().__call__(number)


PATIENCE = 120
"""Seconds after which a worker that nobody joins does its task alone."""
PLACES = [("local", 0), ("local", 2), pytest.param("ray", 2, marks=[pytest.mark.recipe, pytest.mark.ray])]


@pytest.mark.parametrize(("engine", "processes"), PLACES)
def test_results_come_in_order_from_where_they_were_asked(engine: str, processes: int, tmp_path: Path) -> None:
    build = partial(Meeting, str(tmp_path), max(processes, 1), slow=0)
    results = list(run_tasks(range(12), build, engine=engine, processes=processes))
    assert [result for result, _ in results] == [number * number for number in range(12)]
    workers = {process for _, process in results}
    assert (os.getpid() in workers) == (engine == "local" and processes == 0)
    assert len(workers) == max(processes, 1)


def test_unordered_results_do_not_wait_for_a_slow_one(tmp_path: Path) -> None:
    results = run_tasks(range(6), partial(Meeting, str(tmp_path), 2, slow=0), processes=2, ordered=False)
    found = [result for result, _ in results]
    assert sorted(found) == [0, 1, 4, 9, 16, 25]
    assert found[0] != 0


@pytest.mark.parametrize(("engine", "processes"), PLACES)
@pytest.mark.parametrize(
    ("build", "told"), [(partial(Squares, refused=2), "2 is not liked here"), (Broken, "has no weights")]
)
def test_an_error_of_a_worker_is_told_in_its_own_words(
    engine: str, processes: int, build: Callable[[], Callable[[int], object]], told: str
) -> None:
    with pytest.raises(DeixisError, match=told):
        list(run_tasks(range(4), build, engine=engine, processes=processes))


def test_tasks_are_taken_as_they_are_needed_and_nothing_is_built_for_none() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    results = run_tasks(tasks(), Squares)
    assert next(results)[0] == 0
    assert taken == [0]
    assert list(run_tasks([], Broken)) == []
    assert list(run_tasks([], Broken, processes=2)) == []


def test_unknown_engines_and_numbers_are_refused() -> None:
    with pytest.raises(DeixisError, match="unknown engine 'rya': there are local and ray"):
        run_tasks([1], Squares, engine="rya")
    with pytest.raises(DeixisError, match="-1 processes"):
        run_tasks([1], Squares, processes=-1)


class DiesOnce:
    """A worker whose process is killed, by what kills processes, the first time anybody does task 3."""

    def __init__(self, notes: str) -> None:
        self.notes = Path(notes)

    def __call__(self, number: int) -> int:
        with (self.notes / f"{number}-{os.getpid()}-{time.monotonic_ns()}").open("w"):
            pass
        if number == 3 and len(list(self.notes.glob("3-*"))) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return number * 10


@pytest.mark.recipe
@pytest.mark.ray
def test_a_ray_worker_that_is_killed_costs_its_own_task_only(tmp_path: Path) -> None:
    results = list(run_tasks(range(16), partial(DiesOnce, str(tmp_path)), engine="ray", processes=2))
    assert results == [number * 10 for number in range(16)]
    done = [int(file.name.split("-")[0]) for file in tmp_path.iterdir()]
    assert done.count(3) == 2  # it really died, and was done again
    again = len(done) - 16
    assert 1 <= again <= 4, sorted(done)  # with what had been handed to the dead one, and no more


def test_a_local_worker_that_is_killed_is_named_with_its_task(tmp_path: Path) -> None:
    with pytest.raises(DeixisError, match=r"a worker process died \(exit code -9\) on task 3"):
        list(
            run_tasks(range(8), partial(DiesOnce, str(tmp_path)), processes=1, describe=lambda number: f"task {number}")
        )
