"""``deixis review``: a page on which draft boxes are corrected, offline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def review(
    labels: Annotated[
        Path, typer.Argument(metavar="LABELS", help="What `deixis label` wrote, or the page saved before.")
    ],
    photos: Annotated[Path, typer.Option(help="The folder of the photos.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page to write.")] = Path("review.html"),
    limit: Annotated[int, typer.Option(min=1, help="At most so many photos, the most doubtful.")] = 100,
    saves: Annotated[str, typer.Option(help="The name of the file that the page saves.")] = "corrected.json",
    as_json: Annotated[bool, typer.Option("--json", help="Say what was written as JSON.")] = False,
) -> None:
    """Make a page on which draft boxes are moved, relabelled, deleted and added, the doubtful photos first.

    It opens offline in any browser and saves a COCO file, which `deixis corrections` reads.
    Stopped half way: save, and make the page again from the saved file.
    """
    from deixis.cli.outputs import check_output
    from deixis.errors import DeixisError
    from deixis.labels.read import Album, read_labels
    from deixis.labels.review_page import write_review

    check_output(output, "review.html")
    if Path(saves).name != saves or not saves.endswith(".json"):
        raise DeixisError(f"--saves {saves!r} should be the bare name of a file, such as corrected.json")
    album = Album(photos)
    read = read_labels(labels, album, everything=True)
    count = write_review(output, read, album, limit=limit, saves=saves)
    for kind in read.problems.kinds:
        places = "; ".join(read.problems.places(kind, 2))
        typer.echo(f"deixis: {read.problems.count(kind)} x {kind}, such as {places}", err=True)
    if as_json:
        typer.echo(json.dumps({"photos": count, "of": len(read.photos), "file": str(output), "saves": saves}))
        return
    typer.echo(f"wrote {output}: {count} of {len(read.photos)} photos, the most doubtful first")
    typer.echo(f"open it, correct, save {saves}, then: deixis corrections {saves} --draft {labels} --photos {photos}")
