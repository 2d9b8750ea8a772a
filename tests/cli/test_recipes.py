from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deixis.cli.main import app
from deixis.training.recipe_files import read_recipe, recipe_path, shipped_recipes

NAMES = [file.relative_to(folder).with_suffix("").as_posix() for folder, file in shipped_recipes()]


def call(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["recipes", *arguments], env={"COLUMNS": "80"})
    assert result.exit_code == code, result.output
    return result.stdout


def test_every_recipe_has_one_whole_line_at_80_columns() -> None:
    assert len(NAMES) > 20
    lines = call().splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert [line.split()[0] for line in lines[1 : len(NAMES) + 1]] == NAMES
    cyclical = next(line for line in lines if line.startswith("captioning/cyclical")).split()
    assert int(cyclical[1]) == len(read_recipe(recipe_path("captioning/cyclical")).rows)


def test_rows_are_listed_on_request_with_names_that_train_takes() -> None:
    lines = call("captioning/cyclical", "--rows").splitlines()
    names = [line for line in lines if line.startswith("captioning/")]
    assert names[0] == "captioning/cyclical"
    assert len(names) > 5
    listed = [entry["name"] for entry in json.loads(call("--json")) if entry["name"].startswith("captioning/cyclical")]
    assert names == listed
    for name in names:
        assert json.loads(call(name, "--json"))["recipe"]["stages"]


def test_a_recipe_of_another_command_is_shown_as_it_is_written() -> None:
    shown = call("regions/lite")
    assert "deixis regions train regions/lite" in shown
    assert "teachers:" in json.loads(call("regions/lite", "--json"))["text"]


@pytest.mark.parametrize("more", [(), ("--rows",), ("--json",)])
def test_a_misspelt_recipe_is_one_line_with_the_nearest_name(more: tuple[str, ...], tmp_path: Path) -> None:
    wrong = subprocess.run(
        [sys.executable, "-m", "deixis", "recipes", "captioning/cyclicl", *more],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
    assert "did you mean 'captioning/cyclical'?" in wrong.stderr
