"""``deixis train``: a recipe in, a run folder out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[str, typer.Argument(help="A recipe file, FILE.yaml:ROW, or the name of one that ships.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="key=value, such as size=cpu seed=2 stages.words.epochs=3")
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Run folder; default $DEIXIS_HOME/runs/NAME.")] = None,
    resume: Annotated[bool, typer.Option(help="Go on where the run in the folder stopped.")] = False,
    seeds: Annotated[int, typer.Option(help="Train so many seeds; report mean and deviation.")] = 1,
    threads: Annotated[int | None, typer.Option(help="Threads to use; 1 is kind to others on the machine.")] = None,
    tensorboard: Annotated[bool, typer.Option(help="Write TensorBoard files too, if installed.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a recipe. Stop it with Ctrl-C or SIGTERM at any time, and go on with --resume.

    Several processes: accelerate launch --num_processes 2 -m deixis.cli.main train RECIPE -o RUN
    """
    from rich.console import Console

    from deixis.home import cache_home
    from deixis.training.loop import StoppedError
    from deixis.training.recipe_files import find_recipe
    from deixis.training.train import train as run_training

    file, row = find_recipe(recipe)
    plan = file.resolve(overrides or [], row=row)
    name = "-".join(filter(None, [file.path.stem, row, plan.size]))
    path = out or cache_home() / "runs" / name
    try:
        trained = run_training(plan, path, seeds=seeds, resume=resume, threads=threads, tensorboard=tensorboard)
    except StoppedError as stopped:
        typer.echo(f"deixis: {stopped}", err=True)
        raise typer.Exit(128 + stopped.signal) from None  # 130 for Ctrl-C, 143 for SIGTERM, as shells count
    from accelerate import PartialState

    if not PartialState().is_main_process:
        return
    if as_json:
        result = {"run": str(path), "metrics": trained.mean}
        if seeds > 1:
            result |= {"deviation": trained.deviation, "seeds": {str(k): v for k, v in trained.metrics.items()}}
        typer.echo(json.dumps(result))
        return
    console = Console()
    for name, mean in trained.mean.items():
        spread = f" ± {trained.deviation[name]:.4f} over {seeds} seeds" if seeds > 1 else ""
        console.print(f"{name} {mean:.4f}{spread}")
    console.print(f"model in {path}", soft_wrap=True, highlight=False)
