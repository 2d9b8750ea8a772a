"""Extraction on Ray Data over many machines. Finished parts are sent back, so only the photos need a shared disk."""

from __future__ import annotations

import importlib
import itertools
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from deixis.errors import DeixisError, MissingExtraError
from deixis.regions.extraction.tasks import Settings, Task, Worker
from deixis.regions.store.writer import Part

TASKS_PER_ROUND = 512
"""Tasks are handed to Ray in rounds, so that a dataset of millions is never a list in memory."""


class _RayWorker:
    """A Ray Data actor: builds the extractor once, then makes parts."""

    def __init__(self, settings: Settings, fingerprint: str, device: str) -> None:
        import torch

        if device == "cpu":
            torch.set_num_threads(1)
        self.settings, self.fingerprint = settings, fingerprint
        self.problem = ""
        try:
            self.worker = Worker(settings, fingerprint, device)
        except DeixisError as error:  # raised in an actor it would be retried, and wrapped beyond recognition
            self.problem = str(error)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        task: Task = row["task"]
        if self.problem:
            return {"number": task.number, "data": b"", "problem": self.problem}
        return {"number": task.number, "data": self.worker.run(task).data, "problem": ""}


def run_ray(
    tasks: Iterator[Task], settings: Settings, fingerprint: str, *, workers: int, device: str = "cpu"
) -> Iterator[Part]:
    """Make parts on a Ray cluster: the one at ``RAY_ADDRESS``, or one started here for as long as it takes.

    Args:
        tasks: What to make.
        settings: What decides the contents.
        fingerprint: The extractor that every worker must have.
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
            rows = [{"task": task} for task in chunk]
            data = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
                _RayWorker,
                fn_constructor_args=(settings, fingerprint, device),
                compute=ray.data.ActorPoolStrategy(size=workers),
                num_cpus=1,
                num_gpus=0 if device == "cpu" else 1,
            )
            for row in data.iter_rows():
                if row["problem"]:
                    raise DeixisError(str(row["problem"]))
                yield Part(int(np.asarray(row["number"]).item()), bytes(row["data"]))
    finally:
        if mine:
            ray.shutdown()
