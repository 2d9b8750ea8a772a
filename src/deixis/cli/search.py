"""``deixis search``: a folder of photos and a phrase in, the photos that show it out, with boxes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deixis.cli.places import EngineOption, ProcessesOption

if TYPE_CHECKING:
    from deixis.answering.search.index import Found, PhotoIndex, Update


def search(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Photos are looked for in and below it.")],
    query: Annotated[
        str | None,
        typer.Argument(metavar="[PHRASE]", help='Such as "a dog on a sofa"; without it, only the index is made.'),
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=1000, help="How many photos to show.")] = 20,
    html: Annotated[Path | None, typer.Option(help="Write a page of them, which opens offline.")] = None,
    index: Annotated[Path | None, typer.Option(help="Where the index is kept; else in the cache.")] = None,
    update: Annotated[bool, typer.Option(help="Look for photos that came, went or changed first.")] = True,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make the index anew.")] = False,
    model: Annotated[str, typer.Option(help="A run, checkpoint or bundle folder, a hub name, or lite.")] = "lite",
    grounder: Annotated[str | None, typer.Option(help="Take the grounder of this run or bundle.")] = None,
    engine: EngineOption = "local",
    processes: ProcessesOption = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Find photos of a folder by a phrase or a sentence, with the boxes that answer it.

    The first call looks at every photo, once; it can be stopped and goes on with the next call.

    Examples: deixis search photos "a dog on a sofa" --html found.html · deixis search photos "a red hat" --top 5 --json
    """
    from deixis.answering.load import load
    from deixis.answering.search.index import PhotoIndex
    from deixis.answering.work import Place, Source
    from deixis.cli.outputs import check_output
    from deixis.errors import DeixisError
    from deixis.export.page import write_page

    if query is None and html is not None:
        raise DeixisError('nothing to look for: give a phrase, such as "a dog on a sofa", for --html')
    check_output(html, "page.html")
    made = PhotoIndex(
        load(model, grounder=grounder, device=device),
        folder,
        index,
        rebuild=rebuild,
        work_at=Place(engine, processes, device),
        source=Source(model, grounder),
    )
    done = updated(made) if update or not len(made) else None
    found = [] if query is None else made.search(query, top=top)
    if html is not None and found:
        write_page(html, [(one.answer, one.path) for one in found], title=query or "")
    if as_json:
        typer.echo(json.dumps(_as_json(made, query, found), ensure_ascii=False))
    else:
        _print(made, query, found)
        if html is not None and found:
            typer.echo(f"wrote {html}")
    if done is not None and done.failed:
        raise typer.Exit(2)


def updated(made: PhotoIndex) -> Update:
    """Bring the index up to date, with a bar on stderr for many photos."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("looking at photos, once"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=None)
        done = made.update(lambda count, total: bar.update(task, completed=count, total=total))
    for path, why in done.failed:
        typer.echo(f"deixis: {why if path in why else f'{path}: {why}'}", err=True)
    if done.unsettled:
        typer.echo(f"deixis: {done.unsettled} photos changed while they were read; call again for them", err=True)
    return done


def _as_json(made: PhotoIndex, query: str | None, found: list[Found]) -> dict[str, object]:
    return {
        "query": query,
        "photos": len(made),
        "found": [{"score": one.score, "answer": one.answer.to_json()} for one in found],
    }


def _print(made: PhotoIndex, query: str | None, found: list[Found]) -> None:
    from rich.console import Console

    from deixis.cli.outputs import counted

    console = Console(highlight=False)
    if query is None:
        console.print(f"{counted(len(made), 'photo')} can be searched; the index is in {made.place}", soft_wrap=True)
        return
    for rank, one in enumerate(found, 1):
        console.print(f"{rank:3d}  {one.path}  {one.score:.2f}", markup=False, soft_wrap=True)
        for phrase in one.answer.phrases:
            where = " ".join(f"{side:.0f}" for side in phrase.boxes[0])
            told = f"{where}  {phrase.score:.2f}" if phrase.found else "probably not in the photo"
            console.print(f"     {phrase.text}: {told}", markup=False, style="dim", soft_wrap=True)
