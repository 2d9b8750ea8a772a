"""``deixis calibrate``: learn what a grounder's scores mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, TypeVar

import typer

T = TypeVar("T")


def calibrate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run or model folder of a grounder.")],
    data: Annotated[
        list[str], typer.Argument(metavar="DATA...", help="Dataset folders; boxes of phrases or things make it whole.")
    ],
    split: Annotated[
        list[str] | None, typer.Option(help="Photos to fit on (val), one for all or one each: never those of results.")
    ] = None,
    store: Annotated[
        list[str] | None, typer.Option(help="Region store of each DATA, in their order; else regions are found now.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many photos of each DATA.")] = None,
    keep: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="Share of true phrases that must not be called absent.")
    ] = 0.95,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Fit the probability that a box is right and that a phrase is in the picture, and keep it beside the weights.

    The figures shown are cross-fitted: each photo is judged by curves fitted on others. Photos with captions alone tell
    whether a phrase is there; that a box is right is then judged as by the model the grounder started from. Of a COCO
    folder with captions and instances, the categories that are in a photo and that are not are asked for too.
    """
    from deixis.answering.load import load
    from deixis.evaluation.calibration import calibrate as fit
    from deixis.evaluation.setting import EvaluationOptions, prepare

    splits, stores = _each(data, split or ["val"], "--split"), _each(data, store or [None], "--store")
    answerer = load(model, device=device, extractor=store is None)
    works = [
        prepare(answerer, name, EvaluationOptions(own, kept, limit=limit))
        for name, own, kept in zip(data, splits, stores, strict=True)
    ]
    made = fit(works, keep)
    folder = answerer.grounder.folder if answerer.grounder is not None else answerer.part.folder
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "threshold": made.threshold, **made.facts}))
        return
    for name, value in made.facts.items():
        typer.echo(f"{name:10s} {value:.4f}" if isinstance(value, float) else f"{name:10s} {value}")
    typer.echo(f"wrote {folder / 'calibration.json'}: phrases below {made.threshold:.3f} are not found")


def _each(data: list[str], given: Sequence[T], option: str) -> list[T]:
    """Return a value for each dataset: as many as were given, or the one for all; a store belongs to one dataset."""
    from deixis.errors import DeixisError

    for_all = len(given) == 1 and (option != "--store" or given[0] is None)
    if len(given) != len(data) and not for_all:
        raise DeixisError(
            f"{len(data)} datasets but {len(given)} times {option}: give it once for each, in their order"
        )
    return list(given) * len(data) if len(given) == 1 else list(given)
