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
    processes: Annotated[
        int | None, typer.Option(min=1, help="Train in so many processes on this machine, one to a GPU or some cores.")
    ] = None,
    tensorboard: Annotated[bool, typer.Option(help="Write TensorBoard files too, if installed.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a recipe. Stop it with Ctrl-C or SIGTERM at any time, and go on with --resume.

    Several machines: torchrun --nnodes 2 --nproc_per_node 8 … -m deixis train RECIPE -o RUN
    """
    from rich.console import Console

    from deixis.home import cache_home
    from deixis.training.launch import end_with_launcher, is_launched, launch
    from deixis.training.loop import StoppedError
    from deixis.training.recipe_files import find_recipe
    from deixis.training.train import train as run_training

    file, row = find_recipe(recipe)
    plan = file.resolve(overrides or [], row=row)
    name = "-".join(filter(None, [file.path.stem, row, plan.size]))
    path = out or cache_home() / "runs" / name
    if processes is not None and processes > 1 and not is_launched():
        options = ["-o", str(path), "--seeds", str(seeds), "--processes", str(processes)]
        options += ["--resume"] if resume else []
        options += ["--threads", str(threads)] if threads is not None else []
        options += [] if tensorboard else ["--no-tensorboard"]
        options += ["--json"] if as_json else []
        raise typer.Exit(launch(["train", recipe, *(overrides or []), *options], processes))
    end_with_launcher()
    try:
        trained = run_training(
            plan, path, seeds=seeds, resume=resume, threads=threads, tensorboard=tensorboard, processes=processes
        )
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
