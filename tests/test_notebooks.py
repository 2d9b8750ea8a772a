"""The notebooks of ``examples``: kept with what they show. CI runs them again (``make notebooks``)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def code(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def test_there_are_two_and_ci_runs_them() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first-steps", "your-own-photos"]
    assert "make notebooks" in (ROOT / ".ci" / "run").read_text().splitlines()
    assert "examples/run_notebooks.py --check" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.stem))
def test_they_were_run_from_top_to_bottom_without_an_error(path: Path) -> None:
    cells = code(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert any("text/html" in output.get("data", {}) for output in outputs), "an answer shows itself"
    assert not [output for output in outputs if output["output_type"] == "error"]
    text = "".join("".join(output.get("text", "")) for output in outputs)
    assert "deixis: " not in text, "a command has failed"
    assert "/tmp/" not in text, "a path of the machine"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.stem))
def test_files_that_they_name_exist(path: Path) -> None:
    text = "\n".join("".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])
    named = re.findall(r"(?:docs|examples)/[\w/-]+\.(?:md|py)|(?<=\()[\w-]+\.ipynb(?=\))", text)
    assert named
    assert not [name for name in named if not ((ROOT / name).exists() or (path.parent / name).exists())]
