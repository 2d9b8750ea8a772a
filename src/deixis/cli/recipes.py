"""``deixis recipes``: what can be trained, and where each recipe comes from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from deixis.reading.files import read_text
from deixis.reading.plain import MAX_YAML_BYTES


def _other(name: str, path: Path, text: str) -> dict[str, Any]:
    first = text.splitlines()[0].lstrip("# ").strip() if text.startswith("#") else ""
    return {"name": name, "title": first, "paper": "", "table": "", "row": "", "sizes": [], "file": str(path)}


def recipes(
    name: Annotated[
        str | None, typer.Argument(help="Show this recipe: a name of the list, FILE.yaml, with :ROW.")
    ] = None,
    overrides: Annotated[list[str] | None, typer.Argument(help="key=value, applied to what is shown.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """List the recipes with paper, table and row; or show one, resolved as it would be trained."""
    from deixis.training.recipe_files import find_recipe, read_recipe, shipped_recipes

    if name is not None:
        file, row = find_recipe(name)
        plain = file.resolve(overrides or [], row=row).plain()
        if as_json:
            typer.echo(json.dumps({"file": str(file.path), "row": row, "recipe": plain}, ensure_ascii=False))
            return
        import yaml

        typer.echo(f"# {file.path}")
        typer.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), nl=False)
        return
    found: list[dict[str, Any]] = []
    for folder, path in shipped_recipes():
        short = str(path.relative_to(folder).with_suffix(""))
        text = read_text(path, limit=MAX_YAML_BYTES)
        if not re.search(r"^(stages|extends):", text, re.MULTILINE):  # of another command, which it names itself
            found.append(_other(short, path, text))
            continue
        file = read_recipe(path)
        sizes = ["paper", *(size for size in file.sizes if size != "paper")]
        for row in [None, *file.rows]:
            about = file.about if row is None else file.about_row(row)
            found.append(
                {
                    "name": short if row is None else f"{short}:{row}",
                    "title": about.title,
                    "paper": about.paper,
                    "table": about.table,
                    "row": about.row,
                    "sizes": sizes,
                    "file": str(path),
                }
            )
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_edge=False)
    table.add_column("recipe", no_wrap=True)
    for column in ("what", "paper", "table and row", "sizes"):
        table.add_column(column)
    for entry in found:
        place = ", ".join(filter(None, [entry["table"], entry["row"]]))
        table.add_row(entry["name"], entry["title"], entry["paper"], place, " ".join(entry["sizes"]))
    Console().print(table)
