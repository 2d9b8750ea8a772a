"""Recipes as YAML files: ``extends``, ``sizes``, ``rows`` and ``key=value`` overrides, all resolved to one Recipe.

A file may extend another, one beside it or one that ships (``extends: captioning/baseline``), so that a method is
written as its difference to the baseline: keys of the file are merged over those of the other, and ``change`` sets
single values deep inside. ``sizes.cpu`` holds what two cores need, and a size that says ``size: cpu`` itself builds on
that one; ``rows`` holds the rows of a paper's table. ``change``, sizes and rows are mappings of dotted keys, where a
list entry is named by its number or by its ``name`` or ``kind``: ``stages.cycle.objectives.cyclical.weight: 0.4``.
They are applied in this order: extended file, file, change, row, size, command line.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from deixis.errors import BadFileError, BadRecipeError
from deixis.reading.yaml import parse_yaml, read_yaml
from deixis.strict import to_dataclass, unknown_key
from deixis.training.check import check_recipe
from deixis.training.recipe import About, Recipe

_TOP = (*Recipe.__dataclass_fields__, "extends", "change", "sizes", "rows")
MOST_EXTENDED = 20


@dataclass(frozen=True, slots=True)
class RecipeFile:
    """A recipe file before a size and a row are chosen."""

    path: Path
    data: Mapping[str, Any]
    sizes: Mapping[str, Mapping[str, Any]]
    rows: Mapping[str, Mapping[str, Any]]

    @property
    def about(self) -> About:
        """Title, paper, table and row of the file."""
        return to_dataclass(About, self.data.get("about"), f"{self.path.name}: about")

    def about_row(self, row: str) -> About:
        """Title, paper, table and row of one of its rows."""
        data = copy.deepcopy(dict(self.data))
        for key, value in self.rows[row].items():
            if key.startswith("about"):
                set_dotted(data, key, value, f"{self.path.name}: rows.{row}")
        return to_dataclass(About, data.get("about"), f"{self.path.name}: about")

    def resolve(self, overrides: Sequence[str] = (), *, row: str | None = None) -> Recipe:
        """Return the recipe for the ``size`` and ``row`` asked for, with ``key=value`` overrides on top."""
        name = self.path.name
        data = copy.deepcopy(dict(self.data))
        given = [parse_override(text) for text in overrides]
        rows = [value for key, value in given if key == "row"]
        row = str(rows[-1]) if rows else row
        if row is not None:
            if row not in self.rows:
                raise unknown_key(row, self.rows, name, "row")
            _apply(data, self.rows[row], f"{name}: rows.{row}")
        sizes = [value for key, value in given if key == "size"]
        size = sizes[-1] if sizes else data.get("size", "paper")
        for step in self._size_chain(str(size)):
            _apply(data, {key: value for key, value in step.items() if key != "size"}, f"{name}: sizes.{size}")
        data["size"] = size
        for key, value in given:
            if key not in ("row", "size"):
                set_dotted(data, key, value, "the overrides")
        return Recipe.from_plain(data, name)

    def _size_chain(self, size: str) -> list[Mapping[str, Any]]:
        """Return the overlays of a size, the one it builds on first (``size: cpu`` inside it names that one)."""
        chain: list[Mapping[str, Any]] = []
        seen: list[str] = []
        while size != "paper":
            if size not in self.sizes:
                raise unknown_key(size, ["paper", *self.sizes], self.path.name, "size")
            if size in seen:
                raise BadRecipeError(f"{self.path.name}: size {size} builds on itself")
            seen.append(size)
            chain.insert(0, self.sizes[size])
            size = str(self.sizes[size].get("size", "paper"))
        return chain


def read_recipe(path: Path) -> RecipeFile:
    """Read a recipe file and those it extends."""
    return _read(path, ())


def load_recipe(path: Path | str, overrides: Sequence[str] = ()) -> Recipe:
    """Read and resolve in one go; ``PATH:ROW`` chooses a row of the file."""
    file, row = find_recipe(str(path))
    return check_recipe(file.resolve(overrides, row=row))


def find_recipe(name: str) -> tuple[RecipeFile, str | None]:
    """Return the recipe file of a path, or of a short name such as ``captioning/baseline``, and its row after ``:``."""
    given, _, row = name.partition(":")
    return read_recipe(recipe_path(given)), row or None


def recipe_path(name: str) -> Path:
    """Return the file of a recipe given by its path or by its short name."""
    path = Path(name)
    if path.is_file():
        return path
    known = {str(file.relative_to(folder).with_suffix("")): file for folder, file in shipped_recipes()}
    short = name.removesuffix(".yaml").removeprefix("recipes/")
    if short not in known and path.suffix != ".yaml":
        raise unknown_key(name, known, "recipes", "recipe")
    return known.get(short, path)


def shipped_recipes() -> list[tuple[Path, Path]]:
    """Return the recipe files that can be called by name: (folder, file), from the package and the working folder."""
    folders = [Path(str(resources.files("deixis"))) / "recipes", Path.cwd() / "recipes"]
    found: dict[Path, tuple[Path, Path]] = {}
    for folder in folders:
        if folder.is_dir():
            for file in sorted(folder.rglob("*.yaml")):
                found.setdefault(file.resolve(), (folder, file))
    return list(found.values())


def _read(path: Path, above: tuple[Path, ...]) -> RecipeFile:
    if path in above:
        raise BadRecipeError(f"{path} extends itself, by way of {' and '.join(map(str, above[1:])) or 'nothing else'}")
    if len(above) > MOST_EXTENDED:
        raise BadRecipeError(f"{above[0]} extends more than {MOST_EXTENDED} files, one after the other")
    if not path.exists() or path.is_dir():
        raise BadRecipeError(f"no recipe at {path}; `deixis recipes` lists those that ship")
    try:
        data = read_yaml(path)
    except BadFileError as error:
        raise BadRecipeError(str(error)) from error
    if not isinstance(data, dict):
        raise BadRecipeError(f"{path} should hold a mapping, got {type(data).__name__}")
    for key in data:
        if key not in _TOP:
            raise unknown_key(key, _TOP, path.name)
    base = data.pop("extends", None)
    sizes, rows = (_overlays(data.pop(key, None), f"{path.name}: {key}") for key in ("sizes", "rows"))
    change = data.pop("change", None) or {}
    if not isinstance(change, dict):
        raise BadRecipeError(f"{path.name}: change should be a mapping of dotted keys")
    if base is None:
        _apply(data, change, f"{path.name}: change")
        return RecipeFile(path, data, sizes, rows)
    try:
        other = _extended(path, str(base))
    except (OSError, ValueError, RuntimeError) as error:  # a null byte, half a character, links in a circle
        raise BadRecipeError(f"{path.name}: extends {str(base)[:80]!r}, which is no name of a file") from error
    below = _read(other, (*above, path.resolve()))
    merged = copy.deepcopy(_merge(below.data, data))
    _apply(merged, change, f"{path.name}: change")
    names = {*below.sizes, *sizes}
    # Sizes of the base that speak of stages the file replaced would not fit any more, so they go with the old stages.
    kept = {
        size: {key: value for key, value in overlay.items() if not ("stages" in data and key.startswith("stages."))}
        for size, overlay in below.sizes.items()
    }
    return RecipeFile(path, merged, {size: {**kept.get(size, {}), **sizes.get(size, {})} for size in names}, rows)


def _extended(path: Path, base: str) -> Path:
    """Return the file that ``path`` extends: one beside it, or a recipe that ships."""
    beside = (path.parent / base).resolve()
    if beside.is_file():
        return beside
    shipped = recipe_path(base).resolve()
    return shipped if shipped.is_file() else beside


def _overlays(data: object, where: str) -> dict[str, dict[str, Any]]:
    if data is None:
        return {}
    if not isinstance(data, dict) or not all(isinstance(value, dict) for value in data.values()):
        raise BadRecipeError(f"{where} should map names to mappings of dotted keys")
    return {str(name): dict(value) for name, value in data.items()}


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings merge key by key, a component of another ``kind`` and everything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        same = (
            isinstance(old, Mapping)
            and isinstance(value, Mapping)
            and value.get("kind", old.get("kind")) == old.get("kind")
        )
        merged[key] = _merge(old, value) if same and isinstance(old, Mapping) else value
    return merged


def parse_override(text: str) -> tuple[str, Any]:
    """Split ``dotted.key=value``; the value is YAML, so numbers, true, null and [lists] are what they look like."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise BadRecipeError(f"override '{text}' should read key=value, such as seed=2 or stages.0.epochs=3")
    try:
        return key.strip(), parse_yaml(value, "it")
    except BadFileError as error:
        raise BadRecipeError(f"the value of override '{text}' is not YAML") from error


def _apply(data: dict[str, Any], overlay: Mapping[str, Any], where: str) -> None:
    for key, value in overlay.items():
        set_dotted(data, key, value, where)


def set_dotted(data: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set ``a.b.0.c`` inside nested mappings and lists, in place; missing mappings are made, list entries are not."""
    *path, last = key.split(".")
    here: Any = data
    if (path or [last])[0] not in Recipe.__dataclass_fields__:
        raise unknown_key((path or [last])[0], Recipe.__dataclass_fields__, where)
    for at, part in enumerate(path):
        name: Any = _entry(here, part, key, where) if isinstance(here, list) else part
        if isinstance(here, list) and isinstance(here[name], str):
            here[name] = {"kind": here[name]}  # an objective written as its bare name gets options now
        here = here[name] if isinstance(here, list) else here.setdefault(name, {})
        if not isinstance(here, dict | list):
            raise BadRecipeError(f"{where}: '{'.'.join(path[: at + 1])}' is {here!r}, so '{key}' cannot be set")
    if isinstance(here, list):
        here[_entry(here, last, key, where)] = value
    else:
        here[last] = copy.deepcopy(value)


def _entry(items: list[Any], part: str, key: str, where: str) -> int:
    """Return the number of a list entry given by number, name or kind."""
    names = [
        str(item.get("name", item.get("kind", at)) if isinstance(item, dict) else item) for at, item in enumerate(items)
    ]
    if part in names:
        return names.index(part)
    if part.lstrip("-").isdigit() and -len(items) <= int(part) < len(items):
        return int(part)
    raise unknown_key(part, names, f"{where}: {key}", "entry")
