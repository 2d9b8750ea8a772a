"""Work on Ray Data over many machines. Results are sent back, so only what tasks read needs a shared disk.

A worker that dies, with its machine or alone, is started again, and Ray gives what it had not finished to others: it
costs its blocks and no more.
"""

from __future__ import annotations

import importlib
import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from deixis.errors import DeixisError, MissingExtraError

TASKS_PER_ROUND = 512
"""Tasks are handed to Ray in rounds, so that a dataset of millions is never a list in memory."""

T = TypeVar("T")
R = TypeVar("R")


class _RayWorker:
    """A Ray Data actor: builds a worker once, then does tasks."""

    def __init__(self, build: Callable[[], Callable[[Any], Any]], device: str) -> None:
        import torch

        if device == "cpu":
            torch.set_num_threads(1)
        self.problem = ""
        try:
            self.worker = build()
        except DeixisError as error:  # raised in an actor it would be retried, and wrapped beyond recognition
            self.problem = str(error)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        result, problem = None, self.problem
        if not problem:
            try:
                result = self.worker(row["task"])
            except DeixisError as error:
                problem = str(error)
        return {"number": row["number"], "result": _Boxed(result), "problem": problem}


class _Boxed:
    """Keeps Ray from taking a result apart: bytes, lists and arrays would come back as something else."""

    def __init__(self, value: object) -> None:
        self.value = value


def run_ray(
    tasks: Iterator[tuple[int, T]], build: Callable[[], Callable[[T], R]], *, workers: int, device: str = "cpu"
) -> Iterator[tuple[int, R]]:
    """Do tasks on a Ray cluster and yield results as they come: the cluster at ``RAY_ADDRESS``, or one of our own.

    Args:
        tasks: What to do, with numbers.
        build: Makes a worker, on whatever machine; picklable.
        workers: How many workers, each with one CPU (and one GPU where the device is one).
        device: Where networks run.
    """
    try:
        ray: Any = importlib.import_module("ray")
        importlib.import_module("ray.data")
    except ImportError as error:
        raise MissingExtraError("ray[data]", "ray", "--engine ray") from error
    mine = not ray.is_initialized()
    if mine:
        ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        while chunk := list(itertools.islice(tasks, TASKS_PER_ROUND)):
            rows = [{"number": number, "task": task} for number, task in chunk]
            data = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
                _RayWorker,
                fn_constructor_args=(build, device),
                compute=ray.data.ActorPoolStrategy(size=min(workers, len(rows))),
                num_cpus=1,
                num_gpus=0 if device == "cpu" else 1,
            )
            for row in data.iter_rows():
                if row["problem"]:
                    raise DeixisError(str(row["problem"]))
                yield int(np.asarray(row["number"]).item()), row["result"].value
    finally:
        if mine:
            ray.shutdown()
