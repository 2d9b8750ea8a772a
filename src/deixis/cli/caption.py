"""``deixis caption``: photos in, captions whose words have boxes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def caption(
    photos: Annotated[list[Path], typer.Argument(metavar="PHOTO...", help="Image files.")],
    model: Annotated[str, typer.Option(help="A run folder, a hub name, or lite.")] = "lite",
    beam: Annotated[int, typer.Option(min=1, help="Beam width; 1 is greedy.")] = 3,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per photo.")] = False,
) -> None:
    """Caption photos: one sentence each, and the box of every thing it names.

    A photo that cannot be read is an error on stderr; the others are captioned all the same, and the exit code is 2.
    """
    from rich.console import Console
    from rich.markup import escape

    from deixis.answering.load import load
    from deixis.errors import DeixisError

    loaded = load(model, device=device)
    console = Console(highlight=False)
    failed = 0
    for photo in photos:
        try:
            answer = loaded.caption(photo, beam=beam)
        except DeixisError as error:
            typer.echo(f"deixis: {error}", err=True)
            failed += 1
            continue
        if as_json:
            typer.echo(json.dumps(answer.to_json(), ensure_ascii=False))
            continue
        if len(photos) > 1:
            console.print(f"[bold]{escape(str(photo))}[/bold]", soft_wrap=True)
        console.print(answer.text, soft_wrap=True, markup=False)
        for word in answer.words:
            for box in word.boxes:
                sides = " ".join(f"{side:.0f}" for side in box)
                console.print(f"  {word.text:<14} {sides:<22} {word.score:.2f}", markup=False)
    if failed:
        raise typer.Exit(2)
