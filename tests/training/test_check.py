"""Every recipe that ships is one that can work: its parts exist, take their options and fit each other."""

from __future__ import annotations

from pathlib import Path

import pytest

import deixis
from deixis.errors import BadRecipeError
from deixis.training.check import check_recipe
from deixis.training.recipe_files import read_recipe

FOLDER = Path(deixis.__file__).parent / "recipes"
FILES = sorted(path for path in FOLDER.rglob("*.yaml") if path.parent.name != "regions")  # which train no model


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_row_of_every_size_can_work(path: Path) -> None:
    file = read_recipe(path)
    for row in [None, *file.rows]:
        for size in {"paper", *file.sizes}:
            check_recipe(file.resolve([f"size={size}"], row=row))


def test_one_that_cannot_work_is_refused_by_the_same_check() -> None:
    baseline = next(path for path in FILES if path.stem == "baseline")
    with pytest.raises(BadRecipeError, match="cross_entrop'"):
        check_recipe(read_recipe(baseline).resolve(["stages.words.objectives=[cross_entrop]"]))
