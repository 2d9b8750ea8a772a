"""State from which training the `lite` extractor resumes: safetensors and JSON, each written aside and renamed."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from deixis.atomic import whole_file, write_json
from deixis.errors import BadRecipeError
from deixis.reading.plain import read_json_object
from deixis.reading.tensors import load_tensors

THREADS, MOST_THREADS = "threads", 256


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file so that no reader ever sees half of it."""
    with whole_file(path) as partial:
        save_file({name: value.detach().contiguous() for name, value in tensors.items()}, partial)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file, or say which one is damaged."""
    return load_tensors(path)


def save_state(
    run: Path,
    step: int,
    settings: Mapping[str, Any],
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    average: Mapping[str, Tensor],
) -> None:
    """Keep everything that resuming needs; the step number is written last and is what makes the rest count."""
    run.mkdir(parents=True, exist_ok=True)
    write_json(run / "settings.json", {**settings, THREADS: torch.get_num_threads()})
    moments = {
        f"{index}.{name}": value
        for index, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }
    write_tensors(run / "average.safetensors", average)
    everything = {f"module.{name}": value for name, value in module.state_dict().items()}
    everything |= {f"optimizer.{name}": value for name, value in moments.items()}
    everything |= {f"average.{name}": value for name, value in average.items()}
    everything["step"] = torch.tensor(step)
    write_tensors(run / "state.safetensors", everything)


def kept_settings(run: Path) -> dict[str, Any] | None:
    """The settings a run was begun with, as JSON has them; None for a fresh run."""
    path = run / "settings.json"
    return read_json_object(path) if path.is_file() else None


def load_state(
    run: Path,
    settings: Mapping[str, Any],
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    average: dict[str, Tensor],
    may_change: Container[str] = (),
) -> int:
    """Put back what :func:`save_state` kept and return the step to go on from; 0 for a fresh run.

    The run goes on with as many threads as it was begun with: sums that are shared among threads round by their number.
    """
    path = run / "state.safetensors"
    if not path.is_file():
        return 0
    now = json.loads(json.dumps(dict(settings)))
    kept = kept_settings(run) or now
    changed = [name for name, value in now.items() if kept.get(name) != value and name not in may_change]
    if changed:
        raise BadRecipeError(
            f"{run} was begun with other settings ({', '.join(changed)}): resume with the same, or use another folder"
        )
    threads = kept.get(THREADS)
    if isinstance(threads, int) and 0 < threads <= MOST_THREADS and threads != torch.get_num_threads():
        torch.set_num_threads(threads)
    state = read_tensors(path)
    module.load_state_dict({name[7:]: value for name, value in state.items() if name.startswith("module.")})
    for name, value in state.items():
        if name.startswith("average."):
            average[name[8:]].copy_(value)
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in state.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".")
            moments.setdefault(int(index), {})[key] = value
    whole = optimizer.state_dict()
    whole["state"] = moments
    optimizer.load_state_dict(whole)
    return int(state["step"])
