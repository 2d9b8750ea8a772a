"""``deixis export``: predictions in the form other tools read, or as a page to look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deixis.errors import DeixisError

if TYPE_CHECKING:
    from deixis.export.things import Answer

_FORMATS = (
    "json, coco, coco-results, coco-captions, kosmos, labelstudio, fiftyone, yolo, voc, cvat, supervision, anet, csv, "
    "html"
)


def export(
    predictions: Annotated[Path, typer.Argument(metavar="PREDICTIONS", help="What caption, ground or video wrote.")],
    format: Annotated[str, typer.Option("--format", "-f", help=f"One of: {_FORMATS}.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file (yolo, voc: the folder) to write.")],
    like: Annotated[
        Path | None, typer.Option(help="coco…: take image and category ids from this instances or captions file.")
    ] = None,
    classes: Annotated[Path | None, typer.Option(help="anet: the evaluation's object classes, one a line.")] = None,
    prefix: Annotated[
        str | None, typer.Option(help="labelstudio: goes before a photo's name, such as https://host/photos/.")
    ] = None,
    photos: Annotated[Path | None, typer.Option(help="html: the folder that photos are looked for in.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Say what was written as JSON.")] = False,
) -> None:
    """Write predictions in the form other tools read: COCO, Label Studio, FiftyOne, supervision, …, or as a page.

    PREDICTIONS holds the JSON of `deixis caption`, `ground` or `video`: one object, a list, or one a line.
    """
    from rich.console import Console

    from deixis.cli.outputs import check_folder, check_output, counted
    from deixis.export.formats import ExportOptions, export_format, write_export
    from deixis.export.things import read_answers

    if format != "html":
        export_format(format)  # a wrong name is said before a large file is read
    for option, value, kinds in (
        ("--like", like, ("coco", "coco-results", "coco-captions")),
        ("--classes", classes, ("anet",)),
        ("--prefix", prefix, ("labelstudio",)),
        ("--photos", photos, ("html",)),
    ):
        if value is not None and format not in kinds:
            raise DeixisError(f"{option} belongs to the format {' or '.join(kinds)}, not to {format}")
    if format != "html" and export_format(format).folder:
        check_folder(output, f"{output.name}-{format}")
    else:
        check_output(output, "page.html" if format == "html" else "answers.json")
    answers = read_answers(predictions)
    if format == "html":
        written = [_write_page(output, answers, predictions, photos)]
    else:
        options = ExportOptions(like, classes)
        if prefix is not None:
            options = ExportOptions(like, classes, prefix)
        written = write_export(output, answers, format, options)
    if as_json:
        typer.echo(json.dumps({"format": format, "answers": len(answers), "files": [str(path) for path in written]}))
        return
    console = Console(highlight=False)
    for path in written:
        console.print(f"{counted(len(answers), 'answer')} as {format} to {path}", markup=False, soft_wrap=True)


def _write_page(output: Path, answers: list[Answer], predictions: Path, photos: Path | None) -> Path:
    """Write a page of photos, or of one clip; photos that are not here may lie beside the predictions."""
    from deixis.cli.pictures import write_page_of_clip
    from deixis.export.page import find_photo, write_page
    from deixis.types import GroundedCaption

    title = predictions.name
    if photos is None and not any(Path(answer.image).is_file() for answer in answers):
        photos = predictions.parent
    segments = [answer for answer in answers if isinstance(answer, GroundedCaption) and answer.segment is not None]
    if not segments:
        return write_page(output, answers, title=title, root=photos)
    clips = {segment.image for segment in segments}
    if len(clips) > 1 or len(segments) < len(answers):
        raise DeixisError(
            f"a page shows photos or one clip; {title} holds {len(clips)} clips and "
            f"{len(answers) - len(segments)} answers about photos: split it"
        )
    return write_page_of_clip(output, find_photo(clips.pop(), photos), segments)
