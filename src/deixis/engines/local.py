"""Work in processes of this machine, one thread each. A worker that loses its parent ends by itself."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, TypeVar

from deixis.errors import DeixisError

T = TypeVar("T")
R = TypeVar("R")


def run_here(tasks: Iterator[tuple[int, T]], build: Callable[[], Callable[[T], R]]) -> Iterator[tuple[int, R]]:
    """Do tasks in this process, in order: for one GPU, or for looking closely."""
    worker: Callable[[T], R] | None = None
    for number, task in tasks:
        worker = worker or build()  # nothing is loaded where there is nothing to do
        yield number, worker(task)


def run_local(
    tasks: Iterator[tuple[int, T]],
    build: Callable[[], Callable[[T], R]],
    *,
    processes: int,
    describe: Callable[[T], str] = str,
) -> Iterator[tuple[int, R]]:
    """Do tasks in ``processes`` processes and yield their results as they come, in any order."""
    context = multiprocessing.get_context("spawn")  # a fork of a process that has used torch's threads may hang
    workers: dict[Connection, SpawnProcess] = {}
    busy: dict[Connection, tuple[int, T]] = {}
    try:
        for _ in range(processes):
            task = next(tasks, None)
            if task is None:
                break
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there, build), daemon=True)
            process.start()
            there.close()  # so that either end notices when the other is gone
            workers[here] = process
            here.send(task[1])
            busy[here] = task
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                number, given = busy.pop(connection)
                try:
                    answer = connection.recv()
                except (EOFError, ConnectionResetError) as error:
                    workers[connection].join(5)
                    raise DeixisError(
                        f"a worker process died (exit code {workers[connection].exitcode}) on {describe(given)}; "
                        "perhaps out of memory: use fewer --processes, then run the same command again to go on"
                    ) from error
                if isinstance(answer, BaseException):
                    raise answer
                task = next(tasks, None)  # before the result is used, so that no worker waits for the disk
                if task is not None:
                    connection.send(task[1])
                    busy[connection] = task
                yield number, answer
    finally:
        for connection, process in workers.items():
            connection.close()
            if connection in busy:
                process.terminate()
            process.join(10)


def _work(connection: Connection, build: Callable[[], Callable[[Any], Any]]) -> None:
    import torch

    torch.set_num_threads(1)
    try:
        worker = build()
        while True:
            try:
                task = connection.recv()
            except EOFError:  # no more tasks, or the parent was killed
                return
            connection.send(worker(task))
    except (BrokenPipeError, KeyboardInterrupt):
        return
    except Exception as error:
        connection.send(error if isinstance(error, DeixisError) else RuntimeError(f"{type(error).__name__}: {error}"))
