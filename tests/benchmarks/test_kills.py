"""Real commands killed before some of their file operations: they go on, nothing differs, nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.kills.victim import Operations

ROOT = Path(__file__).parents[2]
LIMITS = {
    "extract": 4, "text": 3, "train": 4, "caption": 3, "label": 3, "regions-train": 3, "search": 3, "search-rebuild": 4,
}  # fmt: skip
"""How many points of each; `python -m benchmarks.kills points` takes all of them."""


@pytest.mark.recipe
@pytest.mark.parametrize(("command", "limit"), LIMITS.items())
def test_killed_before_a_file_operation_it_goes_on(command: str, limit: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.kills", "points", command, "--limit", str(limit)],
        cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["kills"] == min(limit, found["points"])  # every one of them landed
    assert (found["cannot_resume"], found["differs"], found["leaves_behind"]) == ([], [], [])
    assert done.returncode == 0


def test_operations_below_a_folder_are_counted_and_the_chosen_one_is_never_done(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from benchmarks.kills.victim import Operations
folder = Path({str(tmp_path)!r})
sys.addaudithook(Operations(folder / "watched", int(sys.argv[1])))
(folder / "watched").mkdir()          # 0
(folder / "elsewhere").write_text("") # not counted
(folder / "watched" / "a").write_text("") # 1
(folder / "watched" / "a").read_text()    # not counted
(folder / "watched" / "a").rename(folder / "watched" / "b") # 2
"""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    killed = subprocess.run([sys.executable, "-c", code, "2"], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [file.name for file in (tmp_path / "watched").iterdir()] == ["a"]
    counter = Operations(tmp_path, None)
    counter("open", (str(tmp_path / "x"), "w", os.O_WRONLY))
    counter("open", (str(tmp_path / "x"), "r", os.O_RDONLY))
    counter("os.rename", ("/elsewhere", "/too", -1, -1))
    assert counter.count == 1
