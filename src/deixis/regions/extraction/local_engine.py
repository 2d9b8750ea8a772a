"""Extraction in processes of this machine, one thread each. A worker that loses its parent ends by itself."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from deixis.errors import DeixisError
from deixis.regions.extraction.tasks import Settings, Task, Worker
from deixis.regions.store.writer import Part


def run_here(tasks: Iterator[Task], settings: Settings, fingerprint: str, device: str = "cpu") -> Iterator[Part]:
    """Make parts in this process, in order: for one GPU, or for looking closely."""
    worker = Worker(settings, fingerprint, device)
    for task in tasks:
        yield worker.run(task)


def run_local(
    tasks: Iterator[Task], settings: Settings, fingerprint: str, *, processes: int, device: str = "cpu"
) -> Iterator[Part]:
    """Make parts in ``processes`` processes and give them back as they come, in any order."""
    context = multiprocessing.get_context("spawn")  # a fork of a process that has used torch's threads may hang
    workers: dict[Connection, SpawnProcess] = {}
    busy: dict[Connection, Task] = {}
    try:
        for _ in range(processes):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there, settings, fingerprint, device), daemon=True)
            process.start()
            there.close()  # so that either end notices when the other is gone
            workers[here] = process
            _give(here, tasks, busy)
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                task = busy.pop(connection)
                try:
                    answer = connection.recv()
                except (EOFError, ConnectionResetError) as error:
                    workers[connection].join(5)
                    raise DeixisError(
                        f"a worker process died (exit code {workers[connection].exitcode}) on the images "
                        f"{', '.join(name for name, _ in task.images)}; perhaps out of memory: use fewer --processes, "
                        "then run the same command again to go on"
                    ) from error
                if isinstance(answer, BaseException):
                    raise answer
                _give(connection, tasks, busy)  # before the part is used, so that no worker waits for the disk
                yield answer
    finally:
        for connection, process in workers.items():
            connection.close()
            if connection in busy:
                process.terminate()
            process.join(10)


def _give(connection: Connection, tasks: Iterator[Task], busy: dict[Connection, Task]) -> None:
    task = next(tasks, None)
    if task is not None:
        connection.send(task)
        busy[connection] = task


def _work(connection: Connection, settings: Settings, fingerprint: str, device: str) -> None:
    import torch

    torch.set_num_threads(1)
    try:
        worker = Worker(settings, fingerprint, device)
        while True:
            try:
                task = connection.recv()
            except EOFError:  # no more tasks, or the parent was killed
                return
            connection.send(worker.run(task))
    except (BrokenPipeError, KeyboardInterrupt):
        return
    except Exception as error:
        connection.send(error if isinstance(error, DeixisError) else RuntimeError(f"{type(error).__name__}: {error}"))
