"""Damaged files of a run are named, and a damaged line of its log is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from deixis.errors import BadFileError
from deixis.training.run import Run
from deixis.training.state import Position, RunState


@pytest.mark.parametrize(
    ("key", "value"),
    [("position", []), ("position", {"step": "3"}), ("position", {"finished": 1}), ("position", {"best": "x"}),
     ("position", {"best_step": -1}), ("schedule", 5), ("optimizer", {}), ("optimizer", [5]), ("processes", "2"),
     ("processes", 0), ("files", [])],
)  # fmt: skip
def test_a_damaged_state_is_named(key: str, value: Any, tmp_path: Path) -> None:
    RunState(Position(step=3), {}, [], 1, {"a": torch.zeros(2)}).save(tmp_path)
    assert RunState.load(tmp_path).position.step == 3
    facts = json.loads((tmp_path / "state.json").read_text())
    (tmp_path / "state.json").write_text(json.dumps(facts | {key: value}))
    with pytest.raises(BadFileError, match=str(tmp_path)):
        RunState.load(tmp_path)


def test_damaged_lines_of_a_log_are_left_out(tmp_path: Path) -> None:
    good = [{"step": 1, "loss": 2.0}, {"step": 3, "loss": 1.0}]
    lines = [
        json.dumps(good[0]).encode(),
        b'{"step": "two"}',
        b"\xff\xfe",
        b"[" * 100_000,
        b"5",
        json.dumps(good[1]).encode(),
    ]
    (tmp_path / "metrics.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    run = Run(tmp_path)
    assert [entry for entry in run.entries() if "loss" in entry] == good
    run.cut_back(2)
    assert list(run.entries()) == good[:1]
