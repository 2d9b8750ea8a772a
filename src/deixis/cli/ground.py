"""``deixis ground``: a photo and phrases in, the boxes of the phrases out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from deixis.cli.options import Things, Threshold


def ground(
    photo: Annotated[Path, typer.Argument(metavar="PHOTO", help="An image file.")],
    phrases: Annotated[
        list[str] | None, typer.Argument(metavar="[PHRASE]...", help='What to look for, such as "a man" "a red hat".')
    ] = None,
    sentence: Annotated[
        str | None, typer.Option(help="Look for the noun phrases of this sentence, or for PHRASEs as parts of it.")
    ] = None,
    model: Annotated[str, typer.Option(help="A run, checkpoint or bundle folder, a hub name, or lite.")] = "lite",
    grounder: Annotated[str | None, typer.Option(help="Take the grounder of this run or bundle.")] = None,
    threshold: Threshold = None,
    things: Things = False,
    html: Annotated[Path | None, typer.Option(help="Write a page that opens offline.")] = None,
    png: Annotated[bool, typer.Option("--png", help="Write NAME.deixis.png, here.")] = False,
    picture: Annotated[
        bool | None, typer.Option("--picture/--no-picture", help="Show a small picture (default: if colours allow).")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> None:
    """Find phrases in a photo: a box and a score for each, or "probably not in the photo"."""
    from deixis.answering.load import load
    from deixis.cli.outputs import check_output
    from deixis.cli.pictures import write_pictures
    from deixis.errors import DeixisError
    from deixis.export.terminal import answer_console, print_answer, shows_pictures

    if not phrases and sentence is None:
        raise DeixisError('nothing to look for: give phrases, such as "a man", or --sentence "A man in a red hat."')
    check_output(html, "page.html")
    loaded = load(model, grounder=grounder, device=device, things=things)
    answer = loaded.ground(photo, phrases or None, sentence=sentence, threshold=threshold)
    written = write_pictures([answer], html=html, png=png)
    if as_json:
        typer.echo(json.dumps(answer.to_json(), ensure_ascii=False))
        return
    console = answer_console(picture)
    print_answer(console, answer, heading=False, picture=shows_pictures(console, picture))
    if not answer.phrases:
        typer.echo("the sentence names nothing one can point at")
    for path in written:
        typer.echo(f"wrote {path}")
