"""``deixis evaluate``: a model measured on a dataset, everything at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from deixis.cli.options import Method, Objectness, Point, Regionness, Things, Threshold
from deixis.defaults import BEAM
from deixis.engines import Engine


def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run or bundle folder, a hub name, or lite.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="A dataset folder.")],
    split: Annotated[
        str | None,
        typer.Option(help="Which split to measure on; test (drawn, where there are no splits), or the only one."),
    ] = None,
    grounder: Annotated[str | None, typer.Option(help="Measure with the grounder of this run or bundle.")] = None,
    store: Annotated[
        str | None, typer.Option(help="Region store of the images; otherwise they are found now and kept.")
    ] = None,
    classes: Annotated[
        Path | None, typer.Option(help="Object classes, one a line; else every head noun is one.")
    ] = None,
    reader: Annotated[str | None, typer.Option(help="The dataset's format, where it is not recognised.")] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, max=50, help=f"Beam width; 1 is greedy. Else 1 for a run, {BEAM} for a bundle.")
    ] = None,
    method: Method = None,
    point: Point = None,
    objectness: Objectness = None,
    regionness: Regionness = None,
    threshold: Threshold = None,
    things: Things = False,
    metrics: Annotated[str, typer.Option(help="Caption metrics; METEOR is added where Java is.")] = "bleu,rouge,cider",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many images.")] = None,
    skip: Annotated[int, typer.Option(min=0, help="Leave out the first so many, such as those a fit saw.")] = 0,
    replicates: Annotated[int, typer.Option(min=0, help="Bootstrap samples of the intervals; 0 for none.")] = 1000,
    retrieval: Annotated[
        int | None,
        typer.Option(min=0, help="Images among which a grounder finds captions, and back. Else 0; 100 for a bundle."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Images at a time.")] = 64,
    engine: Annotated[
        Engine, typer.Option(help="Where regions are found; ray captions on many machines too.")
    ] = "local",
    processes: Annotated[int, typer.Option(min=0, help="How many workers do that; 0 for this process.")] = 2,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write scores.json, .md, .html and captions.jsonl here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Measure a model on a split of a dataset.

    Captions: BLEU, ROUGE-L, CIDEr, METEOR. Grounding: F1 all and loc, per class and per sentence, error types.
    Attention accuracy on the references. Phrases: R@1/5/10 and pointing under both protocols, and what the regions
    allow. COCO's categories, asked for where they are and where they are not. Retrieval both ways. A bundle (such as
    lite) is measured as it answers, with its time per photo. Every number with its 95 % bootstrap interval by photo.
    """
    from deixis.answering.asking import Typed
    from deixis.answering.load import load
    from deixis.answering.work import Source
    from deixis.cli.score import print_report
    from deixis.evaluation.evaluate import evaluate as measure
    from deixis.evaluation.setting import EvaluationOptions

    options = EvaluationOptions(
        split=split,
        store=store,
        reader=reader,
        classes=classes,
        limit=limit,
        skip=skip,
        metrics=tuple(name.strip() for name in metrics.split(",") if name.strip()),
        replicates=replicates,
        batch=batch,
        retrieval=retrieval,
        engine=engine,
        processes=processes,
        source=Source(model, grounder),
        typed=Typed(beam, method, point, objectness, regionness, threshold),
    )
    work = measure(load(model, grounder=grounder, device=device, extractor=store is None, things=things), data, options)
    report = work.report()
    written = [] if output is None else work.write(output)
    if as_json:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False))
        return
    print_report(report)
    for path in written:
        typer.echo(f"wrote {path}")
