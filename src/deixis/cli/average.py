"""``deixis average``: the mean of the weights of models that come from one another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def average(
    models: Annotated[list[str], typer.Argument(metavar="MODEL MODEL …", help="Runs or model folders.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model folder to write.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Write the mean of the weights of several models, one of which started from the other.

    A model tuned to your photos forgets some of what it knew; half way back it keeps most of both.
    """
    from deixis.training.average import average as mean
    from deixis.training.average import find_alike

    folders = find_alike(models)
    mean(folders, output)
    if as_json:
        typer.echo(json.dumps({"folder": str(output), "of": [str(folder) for folder in folders]}))
        return
    typer.echo(f"wrote {output}")
