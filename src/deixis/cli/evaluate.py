"""``deixis evaluate``: a model measured on a dataset, everything at once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, get_args, get_type_hints

import typer

from deixis.defaults import BEAM
from deixis.errors import DeixisError


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
        int | None, typer.Option(min=1, help=f"Beam width; 1 is greedy. Else 1 for a run, {BEAM} for a bundle.")
    ] = None,
    point: Annotated[
        str, typer.Option(help="How attention becomes a box: auto, argmax, union or soft_vote; needs no training.")
    ] = "auto",
    objectness: Annotated[float, typer.Option(help="Exponent of the regions' objectness beside attention.")] = 0.0,
    regionness: Annotated[float, typer.Option(help="Exponent of the regions' regionness beside attention.")] = 0.0,
    metrics: Annotated[str, typer.Option(help="Caption metrics; METEOR is added where Java is.")] = "bleu,rouge,cider",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many images.")] = None,
    replicates: Annotated[int, typer.Option(min=0, help="Bootstrap samples of the intervals; 0 for none.")] = 1000,
    retrieval: Annotated[
        int | None,
        typer.Option(min=0, help="Images among which a grounder finds captions, and back. Else 0; 100 for a bundle."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Images at a time.")] = 64,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write scores.json, .md, .html and captions.jsonl here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Measure a model on a split of a dataset.

    Captions: BLEU, ROUGE-L, CIDEr, METEOR. Grounding: F1 all and loc, per class and per sentence, error types.
    Attention accuracy on the references. Phrases: R@1/5/10 and pointing under both protocols, and what the regions
    allow. Retrieval both ways. A bundle (such as lite) is measured as it answers, with its time per photo.
    Every number with its 95 % bootstrap interval by photo.
    """
    from deixis.answering.load import Deixis
    from deixis.captioning.answer import Pointing
    from deixis.captioning.search.strategy import Strategy
    from deixis.cli.score import _print_report
    from deixis.evaluation.evaluate import EvaluationOptions
    from deixis.evaluation.evaluate import evaluate as measure
    from deixis.evaluation.measure import answering_strategy, evaluate_bundle
    from deixis.metrics.report import write_texts
    from deixis.models.bundle import find_bundle, join
    from deixis.models.names import load

    rules = get_args(get_type_hints(Pointing)["rule"])
    if point not in rules:
        raise DeixisError(f"unknown --point {point!r}: there are {', '.join(rules)}")
    bundle = join(find_bundle(model), None if grounder is None else find_bundle(grounder))
    both = bundle.captioner is not None and bundle.grounder is not None
    options = EvaluationOptions(
        split=split,
        store=store,
        reader=reader,
        classes=classes,
        limit=limit,
        strategy=Strategy() if beam in (None, 1) else Strategy("beam", width=beam or 1),
        pointing=Pointing(rule=point, objectness=objectness, regionness=regionness),  # type: ignore[arg-type]
        metrics=tuple(name.strip() for name in metrics.split(",") if name.strip()),
        replicates=replicates,
        batch=batch,
        retrieval=(100 if both else 0) if retrieval is None else retrieval,
        device=device,
    )
    if both:
        answerer = Deixis.from_bundle(bundle, device=device)
        options = replace(options, strategy=answering_strategy(answerer, beam or BEAM))
        work = evaluate_bundle(answerer, data, options)
    else:
        folder = bundle.captioner or bundle.grounder
        loaded = load(str(folder), device=device)
        work = measure(replace(loaded, name=bundle.name), data, options)
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
