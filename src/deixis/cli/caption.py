"""``deixis caption``: photos in, captions whose words have boxes out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deixis.cli.options import Captioner, Check, Method, Objectness, Point, Regionness, Threshold
from deixis.cli.places import EngineOption, ProcessesOption
from deixis.defaults import BEAM

if TYPE_CHECKING:
    from deixis.answering.known_photos import KnownPhotos
    from deixis.answering.work import Answered
    from deixis.types import GroundedCaption


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
    from deixis.answering.asking import Asking
    from deixis.answering.known_photos import KnownPhotos
    from deixis.answering.photos import find_photos
    from deixis.answering.resumable_lines import AnswerLines, require_alike
    from deixis.answering.work import Asked, Caption, Place, Source, answer_photos
    from deixis.cli.options import asked, loaded
    from deixis.cli.outputs import check_output
    from deixis.cli.pictures import write_pictures
    from deixis.cli.show import answer_console, can_show_pictures, counted, print_answer
    from deixis.types import GroundedCaption

    paths = find_photos(photos)
    check_output(html, "page.html")
    answerer = loaded(model, grounder, device, captioner=captioner)
    asking = asked(answerer, Asking(check=check), beam, method, point, objectness, regionness, threshold)
    checked = answerer.checks(check)
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
            require_alike(lines.path, lines.answers.values(), checked=checked)
            answers = _answered(paths, lines.answers, known)
        waiting = [path for path in paths if str(path) not in answers]
        made = answer_photos(
            answerer,
            (Asked(str(path), path, None) for path in waiting),
            Caption(asking),
            Place(engine, processes, device),
            source=Source(model, grounder, captioner),
        )
        for batch in _shown(made, len(waiting), failed):
            if lines is not None and known is not None:
                known.add(answer.image for answer in batch)
                lines.add(batch)
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


def _shown(
    made: Iterable[Answered[GroundedCaption]], photos: int, failed: list[str]
) -> Iterator[list[GroundedCaption]]:
    """Yield captions as they come, with a bar on stderr for long lists; photos that could not be read are named."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), disable=photos <= 16, transient=True) as bar:
        task = bar.add_task("captions", total=photos)
        for some in made:
            for name, reason in some.failed:
                failed.append(name)
                typer.echo(f"deixis: {reason}", err=True)
            yield some.answers
            bar.advance(task, some.photos)
