"""``deixis score`` and ``deixis compare``: measure predictions, and put measured runs side by side."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deixis.errors import DeixisError

if TYPE_CHECKING:
    from deixis.metrics.compare import Comparison, Entry, Run
    from deixis.metrics.report import Report


class ProtocolName(StrEnum):
    """Protocols that leave a choice."""

    any_box = "any-box"
    merged_box = "merged-box"
    generated = "gen"
    truth = "GT"


def score(
    submission: Annotated[
        Path,
        typer.Argument(
            metavar="PREDICTIONS",
            help="Our JSON (captions or phrases), COCO caption results, an ActivityNet-Entities or GVD submission, or "
            "plain phrase boxes; JSON or one record a line.",
        ),
    ],
    reference: Annotated[
        Path,
        typer.Argument(
            metavar="REFERENCE",
            help="A dataset folder, or a reference file: ActivityNet-Entities, GVD Flickr30k, COCO captions, phrases.",
        ),
    ],
    split: Annotated[list[str] | None, typer.Option(help="Score this split only (may be given several times).")] = None,
    split_file: Annotated[
        Path | None, typer.Option(help="Ids of the splits, for reference files; by default split_ids*.json beside it.")
    ] = None,
    protocol: Annotated[
        ProtocolName | None,
        typer.Option(help="Phrases: one protocol instead of both. Submissions: generated or ground-truth sentences."),
    ] = None,
    lemmas: Annotated[Path | None, typer.Option(help="JSON table word to lemma, instead of spaCy.")] = None,
    classes: Annotated[Path | None, typer.Option(help="Object classes, one a line, for references without.")] = None,
    metrics: Annotated[
        str, typer.Option(help="Caption metrics: bleu,rouge,cider,cider_plain,meteor,spice.")
    ] = "bleu,rouge,cider",
    regions: Annotated[str | None, typer.Option(help="Where the regions come from, for the report.")] = None,
    proposals: Annotated[
        Path | None, typer.Option(help='A region store, or {"image", "boxes"} a line: gives the upper bound.')
    ] = None,
    frequencies: Annotated[
        Path | None, typer.Option(help="JSON table class to boxes in training, to group classes by.")
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Allow predictions for a part of the split.")] = False,
    replicates: Annotated[int, typer.Option(min=0, help="Bootstrap samples of the intervals; 0 for none.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write scores.json, .md and .html into this folder.")
    ] = None,
    write_submission: Annotated[
        Path | None, typer.Option(help="Also write the captions as an ActivityNet-Entities (or GVD) submission.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Score predictions against a dataset or a reference file.

    Prints the protocol, the split, the number of items, where the regions come from, and every number with its 95 %
    bootstrap interval by photo. A file with anything wrong in it is not scored: the error names the line and the value.
    """
    from deixis.metrics.grounding.pairs import submission_json
    from deixis.metrics.report import write_texts
    from deixis.metrics.scoring import ScoreOptions, score_files

    options = ScoreOptions(
        splits=tuple(split or ()),
        split_file=split_file,
        protocol=protocol.value if protocol is not None else None,
        lemmas=lemmas,
        classes=classes,
        metrics=tuple(name.strip() for name in metrics.split(",") if name.strip()),
        regions=regions,
        proposals=proposals,
        frequencies=frequencies,
        partial=partial,
        replicates=replicates,
        seed=seed,
    )
    scored = score_files(submission, reference, options)
    written = scored.report.write(output) if output is not None else []
    if write_submission is not None:
        if not scored.items:
            raise DeixisError("--write-submission needs generated captions with boxes, and a reference with boxes")
        data = submission_json(scored.items, clips=scored.clips, regions=scored.report.region_source)
        text = json.dumps(data) + "\n"
        written += write_texts(write_submission.parent, {write_submission.name: text})
    if as_json:
        typer.echo(json.dumps(scored.report.to_json()))
        return
    print_report(scored.report)
    for path in written:
        typer.echo(f"wrote {path}")


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Two or more results of `deixis score` (scores.json or its folder). NAME=A.json,B.json gives several "
            "seeds of one method a name; the first is what the others are compared with.",
        ),
    ],
    unsupervised: Annotated[str | None, typer.Option(help="The run that is 0 % of the gain.")] = None,
    supervised: Annotated[str | None, typer.Option(help="The run that is 100 % of the gain.")] = None,
    replicates: Annotated[int, typer.Option(min=1, help="Bootstrap samples.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Put scored runs side by side, with significance.

    Each difference to the first run comes with its p value by paired bootstrap over photos; several seeds of a method
    are shown as mean ± deviation. Runs scored under different protocols or on different splits are refused.
    """
    from deixis.metrics.compare import compare_runs

    if (unsupervised is None) != (supervised is None):
        raise DeixisError("--unsupervised and --supervised go together: the gain is measured between the two")
    methods = _methods(runs)
    if len(methods) < 2 and all(len(several) < 2 for several in methods.values()):
        raise DeixisError("comparing needs at least two runs")
    comparisons = compare_runs(
        methods, unsupervised=unsupervised, supervised=supervised, replicates=replicates, seed=seed
    )
    if as_json:
        data = {"deixis": 1, "kind": "comparison", "sections": [table.to_json() for table in comparisons]}
        typer.echo(json.dumps(data))
        return
    for table in comparisons:
        _print_comparison(table)


def _methods(arguments: list[str]) -> dict[str, list[Run]]:
    from deixis.metrics.compare import read_run

    methods: dict[str, list[Run]] = {}
    for argument in arguments:
        name, mark, files = argument.partition("=")
        if not mark or Path(argument).exists():
            path = Path(argument)
            name, files = path.parent.name if path.name == "scores.json" and path.parent.name else path.stem, argument
        name = _unused(name, methods)
        methods[name] = [read_run(Path(file)) for file in (files.split(",") if mark else [files]) if file]
        if not methods[name]:
            raise DeixisError(f"{argument!r} names no file")
    return methods


def _unused(name: str, taken: dict[str, list[Run]]) -> str:
    if name not in taken:
        return name
    return next(f"{name}-{at}" for at in range(2, len(taken) + 3) if f"{name}-{at}" not in taken)


def print_report(report: Report) -> None:
    """Show a report on the terminal."""
    from deixis.metrics.report import cell

    console = Console()
    for section in report.sections:
        console.print(f"[bold]{escape(section.protocol)}[/bold]")
        for key, value in report.header(section).items():
            if key != "protocol":
                console.print(f"  {key}: {escape(value)}", highlight=False, soft_wrap=True)
        table = Table("metric", show_edge=False)
        table.add_column("value", justify="right")
        table.add_column(f"{100 * report.level:.0f} % interval", justify="right")
        for name in section.scores:
            table.add_row(name, section.shown(name), section.shown_interval(name))
        console.print(table)
        for breakdown in section.breakdowns:
            shown = Table(*breakdown.columns[:1], title=breakdown.title, title_justify="left", show_edge=False)
            for column in breakdown.columns[1:]:
                shown.add_column(column, justify="right")
            for row in breakdown.rows[:_ROWS]:
                shown.add_row(*(escape(cell(value)) for value in row))
            console.print()
            console.print(shown)
            if len(breakdown.rows) > _ROWS:
                console.print(f"  … and {len(breakdown.rows) - _ROWS} more (-o FOLDER writes them all)")
        console.print()
    for note in report.notes:
        console.print(f"note: {escape(note)}", highlight=False, soft_wrap=True)


_ROWS = 12


def _print_comparison(table: Comparison) -> None:
    console = Console()
    console.print(f"[bold]{escape(table.protocol)}[/bold]")
    items = f", {table.items:,} photos or clips" if table.items else ""  # times are measured on a few, unnamed ones
    console.print(f"  split: {escape(table.split)}{items}", highlight=False)
    for name, source in table.region_sources.items():
        console.print(f"  regions of {escape(name)}: {escape(source)}", highlight=False)
    shown = Table("metric", show_edge=False)
    for name in table.region_sources:
        shown.add_column(name, justify="right")
    for metric, entries in table.metrics.items():
        shown.add_row(metric, *(_entry(entry, table.scale.get(metric, 100)) for entry in entries.values()))
    console.print(shown)
    console.print("  in brackets: difference to the first, and its p value by paired bootstrap (* below 0.05)\n")


def _entry(entry: Entry, factor: float) -> str:
    text = f"{entry.mean * factor:.2f}"
    if entry.deviation is not None:
        text += f" ± {entry.deviation * factor:.2f}"
    if entry.gain is not None:
        text += f" ({100 * entry.gain:+.0f}%)"
    if entry.difference is not None:
        star = "*" if entry.difference.p < 0.05 else ""
        text += f" [{entry.difference.value * factor:+.2f}, p {entry.difference.p:.3f}{star}]"
    return escape(text)
