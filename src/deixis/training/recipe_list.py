"""What ``deixis recipes`` lists: every recipe that can be called by name, and the rows of each."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deixis.reading.files import read_text
from deixis.reading.yaml import MAX_YAML_BYTES
from deixis.training.recipe_files import read_recipe, recipe_path, shipped_recipes


@dataclass(frozen=True, slots=True)
class ListedRecipe:
    """One recipe, or one row of it (``NAME:ROW``), with the place in a paper that it stands for."""

    name: str
    title: str
    paper: str
    table: str
    row: str
    sizes: tuple[str, ...]
    file: str

    @property
    def place(self) -> str:
        """Paper, table and row in one line, as far as they are known."""
        return ", ".join(filter(None, (self.paper, self.table, self.row)))

    def plain(self) -> dict[str, Any]:
        """Return what ``deixis recipes --json`` prints."""
        return {**asdict(self), "sizes": list(self.sizes)}


def list_recipes(only: str | None = None) -> list[list[ListedRecipe]]:
    """Return for each recipe file the recipe itself and its rows; ``only`` names a single file."""
    if only is not None:
        path = recipe_path(only)
        names = {file: _short(folder, file) for folder, file in shipped_recipes()}
        return [_with_rows(names.get(path, only), path)]
    return [_with_rows(_short(folder, file), file) for folder, file in shipped_recipes()]


def is_training_recipe(path: Path) -> bool:
    """Whether ``deixis train`` reads the file: the extractor and the word model have commands and keys of their own."""
    return re.search(r"^(stages|extends):", read_text(path, limit=MAX_YAML_BYTES), re.MULTILINE) is not None


def _short(folder: Path, file: Path) -> str:
    return file.relative_to(folder).with_suffix("").as_posix()


def _with_rows(name: str, path: Path) -> list[ListedRecipe]:
    if not is_training_recipe(path):
        text = read_text(path, limit=MAX_YAML_BYTES)
        title = text.splitlines()[0].lstrip("# ").strip() if text.startswith("#") else ""
        return [ListedRecipe(name, title.partition(":")[0], "", "", "", (), str(path))]
    file = read_recipe(path)
    sizes = ("paper", *(size for size in file.sizes if size != "paper"))
    listed = []
    for row in [None, *file.rows]:
        about = file.about if row is None else file.about_row(row)
        full = name if row is None else f"{name}:{row}"
        listed.append(ListedRecipe(full, about.title, about.paper, about.table, about.row, sizes, str(path)))
    return listed
