"""``deixis caption``: photos in, captions whose words have boxes out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from deixis.cli.options import Captioner, Check, Method, Objectness, Point, Regionness, Threshold
from deixis.cli.places import EngineOption, ProcessesOption
from deixis.defaults import BEAM

if TYPE_CHECKING:
    from deixis.answering.work import Answered

A = TypeVar("A")


def caption(
    photos: Annotated[list[str], typer.Argument(metavar="PHOTO...", help="Image files, folders, patterns (*.jpg).")],
    model: Annotated[str, typer.Option(help="A run, checkpoint or bundle folder, a hub name, or lite.")] = "lite",
    grounder: Annotated[str | None, typer.Option(help="Take the grounder of this run or bundle.")] = None,
    captioner: Captioner = None,
    beam: Annotated[int, typer.Option(min=1, max=50, help="Beam width; 1 is greedy.")] = BEAM,
    check: Check = None,
    method: Method = None,
    point: Point = None,
    objectness: Objectness = None,
    regionness: Regionness = None,
    threshold: Threshold = None,
    html: Annotated[Path | None, typer.Option(help="Write a page of all photos, which opens offline.")] = None,
    png: Annotated[bool, typer.Option("--png", help="Write NAME.deixis.png for each photo, here.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Append captions as JSON lines; photos already in the file are skipped."),
    ] = None,
    picture: Annotated[
        bool | None, typer.Option("--picture/--no-picture", help="Show a small picture (default: if colours allow).")
    ] = None,
    engine: EngineOption = "local",
    processes: ProcessesOption = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per photo.")] = False,
) -> None:
    """Caption photos: one sentence each, and the box of every thing it names.

    A photo that cannot be read is an error on stderr; the others are captioned all the same, and the exit code is 2.
    """
    from deixis.answering.asking import Asking, Typed
    from deixis.answering.captioned import Captioned
    from deixis.answering.load import load
    from deixis.answering.photos import find_photos
    from deixis.answering.work import Place, Source
    from deixis.cli.outputs import check_output, counted
    from deixis.cli.pictures import write_pictures
    from deixis.export.terminal import answer_console, print_answer, shows_pictures

    check_output(html, "page.html")
    console = answer_console(picture)
    shown = shows_pictures(console, picture)
    paths = find_photos(photos)
    answerer = load(model, grounder=grounder, captioner=captioner, device=device)
    asking = Typed(beam, method, point, objectness, regionness, threshold).asked_of(answerer, Asking(check=check))
    place, source = Place(engine, processes, device), Source(model, grounder, captioner)
    failed = False
    with Captioned(answerer, paths, asking, place, source=source, output=output) as made:
        for some in progress(made, "captions", len(made.waiting)):
            for _, reason in some.failed:
                failed = True
                typer.echo(f"deixis: {reason}", err=True)
            for answer in some.answers:
                if as_json:
                    typer.echo(json.dumps(answer.to_json(), ensure_ascii=False))
                elif output is None or len(paths) <= 16:
                    print_answer(console, answer, heading=len(paths) > 1, picture=shown)
    written = write_pictures(made.in_order, html=html, png=png)
    if not as_json:
        if output is not None:
            before = len(paths) - len(made.waiting)
            skipped = f", of which {before} there before" if before else ""
            typer.echo(f"{output}: {counted(len(made.in_order), 'caption')}{skipped}")
        for path in written:
            typer.echo(f"wrote {path}")
    if failed:
        raise typer.Exit(2)


def progress(made: Iterable[Answered[A]], what: str, photos: int) -> Iterator[Answered[A]]:
    """Yield answers as they come, with a bar on stderr for long lists."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), disable=photos <= 16, transient=True) as bar:
        task = bar.add_task(what, total=photos)
        for some in made:
            yield some
            bar.advance(task, some.photos)
