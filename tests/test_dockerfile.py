"""The Dockerfile, read and not built: what it copies exists and is let through, versions are those of the Makefile."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINES = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text()).splitlines()
STEPS = [line.split(None, 1) for line in LINES if line.strip() and not line.startswith("#")]


def said(step: str) -> list[str]:
    return [rest for name, rest in STEPS if name == step]


def test_what_is_copied_exists_and_reaches_the_build() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    copied = [name for rest in said("COPY") for name in rest.split()[:-1]]
    assert {"pyproject.toml", "src"} <= set(copied)
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored, name


def test_torch_is_that_of_the_makefile_and_of_the_cpu() -> None:
    pinned = re.search(r"torch==[\d.]+", (ROOT / "Makefile").read_text())
    assert pinned is not None
    installs = [rest for rest in said("RUN") if "pip install" in rest]
    assert any(pinned[0] in rest and "whl/cpu" in rest for rest in installs)
    assert all("-c constraints.txt" in rest for rest in installs)


def test_it_serves_as_nobody_special() -> None:
    assert said("FROM")[0].startswith("python:3.11-slim")
    assert said("USER") == ["deixis"]
    command = json.loads(said("CMD")[0])
    assert command[:2] == ["deixis", "serve"]
    assert command[command.index("--port") + 1] == said("EXPOSE")[0]
