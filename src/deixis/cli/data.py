"""``deixis data``: what is in a dataset, one example drawn, clips made from photos, scenes drawn."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from deixis.errors import DeixisError

if TYPE_CHECKING:
    from PIL import Image

    from deixis.data.clips import BoxRule
    from deixis.data.dataset import Dataset
    from deixis.data.survey import Survey
    from deixis.types import Example

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Look at a dataset: what is in it, draw an example, make clips.",
)

DataPath = Annotated[Path, typer.Argument(metavar="DATA", help="A dataset's folder or file (formats: docs/data.md).")]
Format = Annotated[str | None, typer.Option("--format", help="The format, if it is not recognised by itself.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@app.command()
def info(path: DataPath, format: Format = None, as_json: Json = False) -> None:
    """Count images, captions, phrases and boxes of every split, and list what is wrong."""
    from deixis.data import open_dataset
    from deixis.data.locations import find
    from deixis.data.survey import survey

    dataset = open_dataset(find(str(path), "data"), format)
    total = len(dataset)
    with _progress() as progress:
        task = progress.add_task("Reading", total=total)
        result = survey(dataset, progress=lambda done: progress.update(task, advance=done))
    if as_json:
        print(json.dumps(result.to_json(), indent=2))
    else:
        _print_survey(result)


@app.command()
def show(
    path: DataPath,
    id: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="The example's id, as the dataset calls it; else ids are listed."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The .png or .html file to write.")] = None,
    format: Format = None,
    as_json: Json = False,
) -> None:
    """Draw one example with its phrases and boxes in matching colours; without an id, list what there is."""
    from deixis.data import open_dataset
    from deixis.data.locations import find
    from deixis.export.draw import drawing_of_example

    if id is None:
        _print_ids(open_dataset(find(str(path), "data"), format), as_json)
        return
    if output is None and not as_json:
        raise DeixisError("where should the drawing go? Add -o FILE.png or -o FILE.html (or --json to print)")
    dataset = open_dataset(find(str(path), "data"), format)
    example = dataset[id]
    if output is not None:
        drawing_of_example(example, _pictures(example)).save(output)
    if as_json:
        print(json.dumps(_as_json(example, output), indent=2))
        return
    console = Console()
    for caption in example.captions:
        console.print(caption.text, markup=False, highlight=False)
    console.print(f"[dim]drawn to[/] {output}", highlight=False)
    for kind in dataset.problems.kinds:
        for place in dataset.problems.places(kind):
            Console(stderr=True).print(f"note: {kind}: {place}", markup=False, highlight=False)


@app.command()
def clips(
    path: DataPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="The new dataset's folder.")],
    split: Annotated[list[str], typer.Option("--split", help="Which photos; may be given several times.")],
    count: Annotated[list[int], typer.Option("--count", min=1, help="How many clips; one for each --split.")],
    seed: Annotated[int, typer.Option("--seed", min=0, help="Other numbers move the camera otherwise.")] = 0,
    seconds: Annotated[float, typer.Option("--seconds", help="The length of a clip.")] = 3.0,
    rate: Annotated[int, typer.Option("--rate", help="Frames a second.")] = 10,
    width: Annotated[int, typer.Option("--width", help="Pixels.")] = 320,
    classes: Annotated[Path | None, typer.Option("--classes", help="A list of object classes, one a line.")] = None,
    threshold: Annotated[int, typer.Option("--threshold", min=1, help="Else: how often a class is named.")] = 5,
    captions: Annotated[int, typer.Option("--captions", help="Captions of a photo, each a segment of its clip.")] = 1,
    boxes: Annotated[str, typer.Option("--boxes", help="best-frame (as ActivityNet-Entities), every-frame.")] = (
        "best-frame"
    ),
    format: Format = None,
    as_json: Json = False,
) -> None:
    """Make short clips from photos with boxes by a moving camera, in ActivityNet-Entities' form."""
    from deixis.data import open_dataset
    from deixis.data.clips import ClipSettings, make_clips
    from deixis.data.locations import find
    from deixis.text.classes import ObjectClasses

    if len(count) not in (1, len(split)):
        raise DeixisError(f"{len(split)} times --split but {len(count)} times --count: give one count, or one for each")
    if len(set(split)) != len(split):
        raise DeixisError(f"a split is named twice: {', '.join(split)}")
    counts = dict(zip(split, count * len(split) if len(count) == 1 else count, strict=True))
    settings = ClipSettings(
        seconds, rate, width, seed=seed, threshold=threshold, captions=captions, boxes=cast("BoxRule", boxes)
    )
    known = ObjectClasses.from_list(classes) if classes is not None else None
    dataset = open_dataset(find(str(path), "data"), format)
    with _progress() as progress:
        task = progress.add_task("Filming", total=sum(counts.values()))
        report = make_clips(
            dataset,
            output,
            counts,
            settings,
            classes=known,
            progress=lambda done: progress.update(task, advance=done),
        )
    if as_json:
        print(json.dumps({**asdict(report), "folder": str(report.folder)}, indent=2))
        return
    made = ", ".join(f"{number:,} {name}" for name, number in report.clips.items())
    skipped = f"; {report.skipped:,} photos passed over" if report.skipped else ""
    Console().print(
        f"{made} clips with {report.boxes:,} boxes of {report.classes:,} classes in {report.folder}{skipped}",
        highlight=False,
        markup=False,
    )


_LISTED = 20


def _print_ids(dataset: Dataset, as_json: bool) -> None:
    """Print the ids of every split; people see the first of each."""
    ids = {split: list(dataset.ids(split)) for split in dataset.splits}
    if as_json:
        print(json.dumps(ids, indent=2))
        return
    for split, own in ids.items():
        more = f" … {len(own) - _LISTED:,} more (--json lists all)" if len(own) > _LISTED else ""
        print(f"{split}: {' '.join(own[:_LISTED])}{more}")


@app.command()
def scenes(
    output: Annotated[Path, typer.Argument(metavar="FOLDER", help="The new dataset's folder.")],
    train: Annotated[int, typer.Option("--train", min=1, help="How many scenes to train on.")] = 120,
    val: Annotated[int, typer.Option("--val", min=1, help="How many to validate on.")] = 24,
    test: Annotated[int, typer.Option("--test", min=1, help="How many to test on.")] = 24,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Other numbers draw other scenes.")] = 0,
    as_json: Json = False,
) -> None:
    """Draw a small dataset of scenes with captions and boxes, to try training where there are no photos."""
    from deixis.data.scenes import make_scenes

    counts = {"train": train, "val": val, "test": test}
    boxed = make_scenes(output, counts, seed)
    if as_json:
        print(json.dumps({"folder": str(output), **counts, "phrases": boxed}))
        return
    made = ", ".join(f"{count:,} {split}" for split, count in counts.items())
    Console().print(f"{made} scenes with {boxed:,} boxed phrases in {output}", highlight=False, markup=False)


def _pictures(example: Example) -> list[Image.Image]:
    from PIL import Image

    from deixis.images import load_image
    from deixis.types import ImageFile
    from deixis.video import sample_frames

    source = example.source
    if isinstance(source, ImageFile):
        return [load_image(source)]
    if source.path is None:
        raise DeixisError(f"{example.id} cannot be drawn: its clip is not here (put the clips into videos/)")
    frames, _ = sample_frames(source.path, source.start, source.end, source.frames)
    return [Image.fromarray(frame) for frame in frames]


def _as_json(example: Example, output: Path | None) -> dict[str, Any]:
    return {
        "id": example.id,
        "split": example.split,
        "size": example.size,
        "captions": [
            {
                "text": caption.text,
                "phrases": [{"text": caption.phrase_text(phrase), **asdict(phrase)} for phrase in caption.phrases],
            }
            for caption in example.captions
        ],
        "objects": [asdict(thing) for thing in example.objects],
        "drawing": str(output) if output is not None else None,
    }


def _print_survey(result: Survey) -> None:
    console = Console()
    table = Table(title=f"{result.path} ({result.format})", title_justify="left", title_style="bold")
    table.add_column("split")
    for name in ("images", "files here", "captions", "phrases", "with boxes", "boxes"):
        table.add_column(name, justify="right")
    rows = list(result.splits.items())
    for name, counts in rows:
        table.add_row(name, *(f"{value:,}" for value in asdict(counts).values()))
    if len(rows) > 1:
        table.add_section()
        table.add_row("all", *(f"{value:,}" for value in asdict(result.total).values()), style="bold")
    for name, counts in result.drawn.items():
        table.add_row(name, *(f"{value:,}" for value in asdict(counts).values()), style="dim")
    console.print(table)
    if result.drawn:
        console.print("There are no splits: train, val and test are drawn by name, for each photo always the same.")
    if not result.problems.kinds:
        console.print("No problems found.")
        return
    console.print("[bold]Problems[/]")
    for kind in result.problems.kinds:
        console.print(f"[yellow]{result.problems.count(kind):>8,}[/]  {kind}", highlight=False)
        for place in result.problems.places(kind):
            console.print(f"          {place}", markup=False, highlight=False, soft_wrap=True)


def _progress() -> Progress:
    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
