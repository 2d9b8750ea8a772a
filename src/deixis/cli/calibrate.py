"""``deixis calibrate``: learn what a grounder's scores mean."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def calibrate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run or model folder of a grounder.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="A dataset folder; boxes of phrases make it whole.")],
    split: Annotated[str, typer.Option(help="Photos to fit on: never those you report results on.")] = "val",
    store: Annotated[
        str | None, typer.Option(help="Region store of the images; otherwise they are found now and kept.")
    ] = None,
    keep: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="Share of true phrases that must not be called absent.")
    ] = 0.95,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Fit the probability that a box is right and that a phrase is in the picture, and keep it beside the weights.

    The figures shown are cross-fitted: each photo is judged by curves fitted on others. Photos with captions alone tell
    whether a phrase is there; that a box is right is then judged as by the model the grounder started from.
    """
    from deixis.cli.options import loaded
    from deixis.evaluation.calibration import calibrate as fit
    from deixis.evaluation.setting import EvaluationOptions, prepare

    work = prepare(loaded(model, None, device, extractor=store is None), data, EvaluationOptions(split, store))
    made = fit(work, keep)
    folder = work.model.grounder.folder if work.model.grounder is not None else work.model.part.folder
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "threshold": made.threshold, **made.facts}))
        return
    for name, value in made.facts.items():
        typer.echo(f"{name:10s} {value:.4f}" if isinstance(value, float) else f"{name:10s} {value}")
    typer.echo(f"wrote {folder / 'calibration.json'}: phrases below {made.threshold:.3f} are not found")
