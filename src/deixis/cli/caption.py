"""``deixis caption``: photos in, captions whose words have boxes out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deixis.cli.options import Method, Objectness, Point, Regionness, Threshold
from deixis.defaults import BEAM

if TYPE_CHECKING:
    from deixis.answering.asking import Asking
    from deixis.answering.known_photos import KnownPhotos
    from deixis.answering.load import Deixis
    from deixis.types import GroundedCaption


def caption(
    photos: Annotated[list[str], typer.Argument(metavar="PHOTO...", help="Image files, folders, patterns (*.jpg).")],
    model: Annotated[str, typer.Option(help="A run, checkpoint or bundle folder, a hub name, or lite.")] = "lite",
    grounder: Annotated[str | None, typer.Option(help="Take the grounder of this run or bundle.")] = None,
    beam: Annotated[int, typer.Option(min=1, max=50, help="Beam width; 1 is greedy.")] = BEAM,
    check: Annotated[bool, typer.Option(help="Ask the grounder whether each thing is really there.")] = False,
    method: Method = None,
    point: Point = None,
    objectness: Objectness = None,
    regionness: Regionness = None,
    threshold: Threshold = None,
    html: Annotated[Path | None, typer.Option(help="Write a page of all photos, which opens offline.")] = None,
    png: Annotated[bool, typer.Option("--png", help="Write NAME.deixis.png for each photo, here.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Append captions as JSON lines; photos that are there are skipped."),
    ] = None,
    picture: Annotated[
        bool | None, typer.Option("--picture/--no-picture", help="Show a small picture; else where colours allow.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per photo.")] = False,
) -> None:
    """Caption photos: one sentence each, and the box of every thing it names.

    A photo that cannot be read is an error on stderr; the others are captioned all the same, and the exit code is 2.
    """
    from deixis.answering.asking import Asking
    from deixis.answering.known_photos import KnownPhotos
    from deixis.answering.photos import find_photos
    from deixis.answering.resumable_lines import AnswerLines, require_alike
    from deixis.cli.options import asked, loaded
    from deixis.cli.outputs import check_output
    from deixis.cli.pictures import write_pictures
    from deixis.cli.show import answer_console, can_show_pictures, counted, print_answer
    from deixis.types import GroundedCaption

    paths = find_photos(photos)
    check_output(html, "page.html")
    answerer = loaded(model, grounder, device)
    asking = asked(answerer, Asking(check=check), beam, method, point, objectness, regionness, threshold)
    if check:
        answerer.require_grounder()
    failed: list[str] = []
    answers: dict[str, GroundedCaption] = {}
    console = answer_console(picture)
    shown = can_show_pictures(console) if picture is None else picture
    with ExitStack() as stack:
        lines = (
            stack.enter_context(AnswerLines.open(output, GroundedCaption.from_json, model=answerer.name))
            if output
            else None
        )
        known = None if output is None else KnownPhotos(output)
        if lines is not None and known is not None:
            require_alike(lines.path, lines.answers.values(), checked=check)
            answers = _answered(paths, lines.answers, known)
        waiting = [path for path in paths if str(path) not in answers]
        for batch in _captions(answerer, waiting, asking, failed, progress=len(waiting) > 16):
            if lines is not None and known is not None:
                lines.add(batch)
                known.add(answer.image for answer in batch)
            answers |= {answer.image: answer for answer in batch}
            for answer in batch:
                if as_json:
                    typer.echo(json.dumps(answer.to_json(), ensure_ascii=False))
                elif lines is None or len(paths) <= 16:
                    print_answer(console, answer, heading=len(paths) > 1, picture=shown)
    everything = [answers[str(path)] for path in paths if str(path) in answers]
    written = write_pictures(everything, html=html, png=png)
    if not as_json:
        if output is not None:
            skipped = f", of which {len(paths) - len(waiting)} there before" if len(waiting) < len(paths) else ""
            typer.echo(f"{output}: {counted(len(everything), 'caption')}{skipped}")
        for path in written:
            typer.echo(f"wrote {path}")
    if failed:
        raise typer.Exit(2)


def _answered(
    paths: list[Path], answers: Mapping[str, GroundedCaption], known: KnownPhotos
) -> dict[str, GroundedCaption]:
    """Return the answers about these photos that are there, by what the photos are called now."""
    found = {}
    for path in paths:
        name = str(path) if str(path) in answers else known.name_of(path)
        if name is not None and name in answers:
            found[str(path)] = replace(answers[name], image=str(path))
    return found


def _captions(
    model: Deixis, photos: list[Path], asking: Asking, failed: list[str], *, progress: bool
) -> Iterator[list[GroundedCaption]]:
    """Yield captions batch by batch, with a bar on stderr for long lists."""
    from rich.console import Console
    from rich.progress import Progress

    from deixis.answering.batches import in_batches
    from deixis.errors import DeixisError

    def note(photo: str, error: DeixisError) -> None:
        failed.append(photo)
        typer.echo(f"deixis: {error}", err=True)

    bar = Progress(console=Console(stderr=True), disable=not progress, transient=True)
    with bar:
        task = bar.add_task("captions", total=len(photos))
        for batch in in_batches(((str(photo), photo) for photo in photos), note):
            names = [name for name, _ in batch]
            yield model.captions([pixels for _, pixels in batch], asking, names=names)
            bar.advance(task, len(batch))
