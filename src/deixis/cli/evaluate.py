"""``deixis evaluate``: a model measured on a dataset, everything at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run folder, a hub name, or lite.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="A dataset folder.")],
    split: Annotated[str, typer.Option(help="Which split to measure on.")] = "test",
    store: Annotated[
        str | None, typer.Option(help="Region store of the images; otherwise they are found now and kept.")
    ] = None,
    classes: Annotated[
        Path | None, typer.Option(help="Object classes, one a line; else every head noun is one.")
    ] = None,
    reader: Annotated[str | None, typer.Option(help="The dataset's format, where it is not recognised.")] = None,
    beam: Annotated[int, typer.Option(min=1, help="Beam width; 1 is greedy.")] = 1,
    metrics: Annotated[str, typer.Option(help="Caption metrics; METEOR is added where Java is.")] = "bleu,rouge,cider",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many images.")] = None,
    replicates: Annotated[int, typer.Option(min=0, help="Bootstrap samples of the intervals; 0 for none.")] = 1000,
    batch: Annotated[int, typer.Option(min=1, help="Images at a time.")] = 64,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write scores.json, .md, .html and captions.jsonl here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Measure a model on a split of a dataset.

    Captions: BLEU, ROUGE-L, CIDEr, METEOR. Grounding: F1 all and loc, per class and per sentence, error types.
    Attention accuracy on the references. Every number with its 95 % bootstrap interval by photo.
    """
    from deixis.captioning.strategy import Strategy
    from deixis.cli.score import _print_report
    from deixis.metrics.report import write_texts
    from deixis.training.evaluate import EvaluationOptions
    from deixis.training.evaluate import evaluate as measure
    from deixis.training.models import load

    strategy = Strategy() if beam == 1 else Strategy("beam", width=beam)
    options = EvaluationOptions(
        split=split,
        store=store,
        reader=reader,
        classes=classes,
        limit=limit,
        strategy=strategy,
        metrics=tuple(name.strip() for name in metrics.split(",") if name.strip()),
        replicates=replicates,
        batch=batch,
        device=device,
    )
    work = measure(load(model, device=device), data, options)
    report = work.report()
    written: list[Path] = []
    if output is not None:
        written = report.write(output)
        if work.captions:
            lines = "".join(json.dumps(caption.to_json(), ensure_ascii=False) + "\n" for caption in work.captions)
            written += write_texts(output, {"captions.jsonl": lines})
    if as_json:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False))
        return
    _print_report(report)
    for path in written:
        typer.echo(f"wrote {path}")
