"""Everything needed to go on exactly where a run stopped, as safetensors and JSON: no pickle, so no code to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from deixis.atomic import write_json
from deixis.errors import BadFileError
from deixis.models.checkpoint import digest
from deixis.reading.plain import expect_count, expect_list, expect_number, expect_object, read_json_object
from deixis.reading.tensors import load_tensors

STATE_VERSION = 1
TENSORS, FACTS = "state.safetensors", "state.json"


@dataclass(slots=True)
class Position:
    """Where a run is. ``batch`` is the next batch of the epoch; ``step`` counts optimizer steps over all stages."""

    stage: int = 0
    epoch: int = 0
    batch: int = 0
    step: int = 0
    stage_step: int = 0
    best: float | None = None
    """Best validation of this stage so far."""
    best_step: int | None = None
    stale: int = 0
    """Validations in a row without a gain."""
    finished: bool = False


@dataclass(slots=True)
class RunState:
    """Position, schedule, number of processes, and named tensors: stage weights, optimizer, random generators."""

    position: Position
    schedule: Mapping[str, Any]
    optimizer: list[dict[str, Any]]
    """The optimizer's parameter groups."""
    processes: int
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def save(self, folder: Path) -> None:
        """Write ``state.safetensors`` and ``state.json``."""
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in self.tensors.items()}, folder / TENSORS)
        facts = {
            "version": STATE_VERSION,
            "position": asdict(self.position),
            "schedule": dict(self.schedule),
            "optimizer": self.optimizer,
            "processes": self.processes,
            "files": {TENSORS: digest(folder / TENSORS)},
        }
        write_json(folder / FACTS, facts)

    @classmethod
    def load(cls, folder: Path) -> RunState:
        """Read a state back; a damaged file is refused."""
        facts = read_json_object(folder / FACTS)
        if facts.get("version") != STATE_VERSION:
            raise BadFileError(f"{folder / FACTS} has version {facts.get('version')!r}, expected {STATE_VERSION}")
        try:
            if digest(folder / TENSORS) != facts["files"][TENSORS]:
                raise BadFileError(f"{folder / TENSORS} is damaged: its checksum is not the one in {FACTS}")
            tensors = load_tensors(folder / TENSORS)
            place = f"{folder / FACTS}: "
            groups = expect_list(facts["optimizer"], f"{place}optimizer")
            return cls(
                _position(expect_object(facts["position"], f"{place}position"), f"{place}position"),
                expect_object(facts["schedule"], f"{place}schedule"),
                [expect_object(group, f"{place}optimizer") for group in groups],
                expect_count(facts["processes"], f"{place}processes", least=1),
                tensors,
            )
        except (OSError, LookupError, TypeError, ValueError) as error:
            raise BadFileError(f"the state in {folder} is damaged: {error}") from error


def _position(data: Mapping[str, Any], place: str) -> Position:
    position = Position(**{item.name: data[item.name] for item in fields(Position) if item.name in data})
    for name in ("stage", "epoch", "batch", "step", "stage_step", "stale"):
        expect_count(getattr(position, name), f"{place}.{name}")
    if position.best is not None:
        expect_number(position.best, f"{place}.best")
    if position.best_step is not None:
        expect_count(position.best_step, f"{place}.best_step")
    if not isinstance(position.finished, bool):
        raise BadFileError(f"{place}.finished should be true or false, not {position.finished!r}"[:300])
    return position


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """Return an optimizer's moments as named tensors, and its parameter groups as JSON."""
    state = optimizer.state_dict()
    tensors: dict[str, Tensor] = {}
    for number, entries in state["state"].items():
        for name, value in entries.items():
            if value is not None:
                tensors[f"optimizer.{number}.{name}"] = torch.as_tensor(value)
    return tensors, [
        {key: list(v) if isinstance(v, tuple) else v for key, v in g.items()} for g in state["param_groups"]
    ]


def load_optimizer(optimizer: torch.optim.Optimizer, state: RunState) -> None:
    """Put saved moments and parameter groups back."""
    moments: dict[int, dict[str, Tensor]] = {}
    for key, tensor in state.tensors.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".", 2)
            moments.setdefault(int(number), {})[name] = tensor
    try:
        optimizer.load_state_dict({"state": moments, "param_groups": state.optimizer})
    except (ValueError, KeyError) as error:
        raise BadFileError(f"the saved optimizer does not fit the recipe's: {error}") from error
