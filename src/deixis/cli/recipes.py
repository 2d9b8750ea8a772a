"""``deixis recipes``: what can be trained, and where each recipe comes from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deixis.training.recipe_list import ListedRecipe


def recipes(
    name: Annotated[
        str | None, typer.Argument(help="Show this recipe: a name of the list, FILE.yaml, with :ROW.")
    ] = None,
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, applied to what is shown.")] = None,
    rows: Annotated[bool, typer.Option("--rows", help="List the rows of NAME, or of all recipes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """List the recipes, with --rows also those of the papers' tables; with NAME, show it as it would be trained."""
    from deixis.training.recipe_list import list_recipes

    if name is not None and not rows:
        _show(name, overrides or [], as_json)
        return
    found = list_recipes(name.partition(":")[0] if name else None)
    if as_json:
        typer.echo(json.dumps([entry.plain() for file in found for entry in file], ensure_ascii=False))
    elif rows:
        _print_rows(found)
    else:
        _print_files(found)


def _show(name: str, overrides: Sequence[str], as_json: bool) -> None:
    """Print one recipe with everything it extends filled in."""
    from deixis.training.recipe_files import find_recipe, recipe_path
    from deixis.training.recipe_list import is_training_recipe

    path = recipe_path(name.partition(":")[0])
    if path.is_file() and not is_training_recipe(path):
        from deixis.reading.files import read_text
        from deixis.reading.yaml import MAX_YAML_BYTES

        text = read_text(path, limit=MAX_YAML_BYTES)
        typer.echo(json.dumps({"file": str(path), "text": text}) if as_json else f"# {path}\n{text}", nl=as_json)
        return
    import yaml

    file, row = find_recipe(name)
    plain = file.resolve(overrides, row=row).plain()
    if as_json:
        typer.echo(json.dumps({"file": str(file.path), "row": row, "recipe": plain}, ensure_ascii=False))
        return
    typer.echo(f"# {file.path}")
    typer.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), nl=False)


def _print_files(found: Sequence[Sequence[ListedRecipe]]) -> None:
    """One line each, whatever the terminal's width: titles are cut, names are not."""
    from rich.console import Console

    console = Console()
    width = max(len(first.name) for first, *_ in found)
    console.print(f"{'recipe':<{width}}  rows  what it trains", style="bold", soft_wrap=True)
    for first, *others in found:
        line = f"{first.name:<{width}}  {len(others) or '':>4}  {first.title}"
        console.print(line, markup=False, highlight=False, no_wrap=True, overflow="ellipsis")
    console.print()
    for line in (
        "deixis recipes NAME          the recipe, complete, as it would be trained",
        "deixis recipes NAME --rows   its rows: variants from the papers' tables",
        "deixis train NAME[:ROW]      train it; size=cpu for the size of two cores",
    ):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _print_rows(found: Sequence[Sequence[ListedRecipe]]) -> None:
    """Every row on a line of its own, what it is below it."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console()
    for file in found:
        for entry in file:
            console.print(entry.name, markup=False, highlight=False, soft_wrap=True, style="bold")
            for line in filter(None, (entry.title, entry.place)):
                console.print(Padding(Text(line), (0, 0, 0, 4)))
        console.print()
