"""``deixis label``: draft boxes for what captions say, or for phrases you name, for a person to review."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from deixis.cli.options import Threshold
from deixis.cli.places import EngineOption, ProcessesOption

if TYPE_CHECKING:
    from deixis.answering.asking import Asking
    from deixis.answering.label import Failed
    from deixis.answering.load import Deixis
    from deixis.answering.resumable_lines import AnswerLines
    from deixis.answering.work import Place, Source
    from deixis.types import GroundedPhrases

Drafting = Callable[["Deixis", "AnswerLines[GroundedPhrases]", "Failed"], Iterator[int]]
Format = Literal["coco", "labelstudio", "yolo", "voc", "cvat", "fiftyone", "json"]


def label(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A dataset with captions; with --phrases, any folder of photos.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The file of labels to write; for yolo and voc a new folder.")
    ],
    format: Annotated[Format, typer.Option(help="What the labels are for.")] = "coco",
    phrases: Annotated[
        str | None, typer.Option(help='Look for these in every photo, such as "dog, red car"; no captions needed.')
    ] = None,
    phrases_file: Annotated[Path | None, typer.Option(help="The same from a text file, one a line.")] = None,
    boxes: Annotated[int, typer.Option(min=1, help="With phrases: at most so many boxes of each in a photo.")] = 5,
    split: Annotated[str | None, typer.Option(help="Only this split.")] = None,
    model: Annotated[str, typer.Option(help="A run, checkpoint or bundle folder, a hub name, or lite.")] = "lite",
    grounder: Annotated[str | None, typer.Option(help="Take the grounder of this run or bundle.")] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Doubt what is probably not there, or believe every phrase.")
    ] = True,
    threshold: Threshold = None,
    reader: Annotated[str | None, typer.Option(help="The dataset's format, where it is not recognised.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many photos.")] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Label Studio: what goes before a photo's name, an address or its local files.")
    ] = None,
    engine: EngineOption = "local",
    processes: ProcessesOption = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Draft boxes for every phrase of every caption, or for the phrases you name, the doubtful ones first.

    Stopped in the middle, the same command goes on where it was; the file of labels appears when all is done.
    `deixis review` makes a page on which to correct them, `deixis corrections` reads them back.
    """
    from rich.console import Console
    from rich.progress import Progress

    from deixis.answering.asking import Asking
    from deixis.answering.label import open_drafts
    from deixis.answering.load import load
    from deixis.answering.work import Place, Source
    from deixis.cli.outputs import check_folder, check_output
    from deixis.errors import DeixisError
    from deixis.export.formats import FORMATS

    if FORMATS[format].folder:
        check_folder(output, f"{output.name}-{format}")
    else:
        check_output(output, "labels.json")
    wanted = _phrases(phrases, phrases_file, split, reader)
    failed = 0

    def note(image: str, error: DeixisError) -> None:
        nonlocal failed
        failed += 1
        typer.echo(f"deixis: {image}: {error}", err=True)

    asking = Asking(check=check, threshold=threshold)
    if not check:
        asking = Asking(threshold=0.0)  # whatever its probability, it counts as found
    where = _Where(Place(engine, processes, device), Source(model, grounder), asking)
    work = (
        _of_captions(data, split, reader, limit, where)
        if wanted is None
        else _of_phrases(data, wanted, boxes, limit, where)
    )
    loaded = load(model, grounder=grounder, device=device)
    with (
        open_drafts(output, loaded, asking.threshold) as drafts,
        Progress(console=Console(stderr=True), transient=True) as bar,
    ):
        task = bar.add_task("photos", total=work.photos)
        for count in work.run(loaded, drafts, note):
            bar.advance(task, count)
        answers = list(drafts.answers.values())
        if not answers:
            raise DeixisError(work.nothing)
        written = write_labels(output, answers, format, prefix)
        left = drafts.path
    left.unlink(missing_ok=True)
    _tell(answers, failed, written, as_json)
    if failed:
        raise typer.Exit(2)


@dataclass(frozen=True, slots=True)
class _Work:
    """How many photos there are, what drafts their boxes, and what to say where nothing came of it."""

    photos: int
    run: Drafting
    nothing: str


def _phrases(given: str | None, file: Path | None, split: str | None, reader: str | None) -> list[str] | None:
    """Return the phrases that somebody names, or None where captions do."""
    from deixis.answering.label import read_phrases
    from deixis.errors import DeixisError
    from deixis.reading.files import read_text

    if given is None and file is None:
        return None
    for option, value in (("--split", split), ("--reader", reader)):
        if value is not None:
            raise DeixisError(
                f"{option} belongs to datasets with captions; with phrases, name the folder of the photos"
            )
    return read_phrases("\n".join(filter(None, (given, None if file is None else read_text(file)))))


class _Where(NamedTuple):
    """Where the work is done, which model is loaded there, and how it is asked."""

    place: Place
    source: Source
    asking: Asking


def _of_captions(data: str, split: str | None, reader: str | None, limit: int | None, where: _Where) -> _Work:
    from deixis.answering.label import draft_labels
    from deixis.data.locations import find
    from deixis.data.open import open_dataset

    dataset = open_dataset(find(data, "data"), reader)
    ids = dataset.ids(split)[:limit]
    nothing = f"{dataset.path} has no photo with a caption that names something: nothing to label"
    return _Work(
        len(ids),
        lambda model, drafts, failed: draft_labels(
            model, dataset, ids, drafts, failed, asking=where.asking, place=where.place, source=where.source
        ),
        nothing,
    )


def _of_phrases(data: str, phrases: list[str], boxes: int, limit: int | None, where: _Where) -> _Work:
    from deixis.answering.label import draft_phrases
    from deixis.answering.photos import find_photos
    from deixis.data.locations import find

    folder = find(data, "data")
    root = folder if folder.is_dir() else folder.parent
    photos = {path.relative_to(root).as_posix(): path for path in find_photos([folder])[:limit]}
    return _Work(
        len(photos),
        lambda model, drafts, failed: draft_phrases(
            model,
            photos,
            phrases,
            drafts,
            failed,
            boxes=boxes,
            asking=where.asking,
            place=where.place,
            source=where.source,
        ),
        f"none of the {len(photos)} photos of {folder} can be read: nothing to label",
    )


def write_labels(path: Path, answers: Sequence[GroundedPhrases], format: Format, prefix: str | None) -> list[Path]:
    """Write drafts in review order, and return the files' names."""
    from deixis.atomic import write_text
    from deixis.export import coco
    from deixis.export.formats import ExportOptions, write_export
    from deixis.export.review import in_review_order

    if format == "coco":  # with the doubts of each photo, which an export of predictions does not have
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(coco.labels(answers), ensure_ascii=False) + "\n")
        return [path]
    options = ExportOptions() if prefix is None else ExportOptions(prefix=prefix)
    return write_export(path, in_review_order(answers), format, options)


def _tell(answers: Sequence[GroundedPhrases], failed: int, written: Sequence[Path], as_json: bool) -> None:
    phrases = [phrase for answer in answers for phrase in answer.phrases]
    facts: dict[str, Any] = {
        "photos": len({answer.image for answer in answers}),
        "captions": sum(answer.sentence is not None for answer in answers),
        "phrases": len(phrases),
        "boxes": sum(len(phrase.boxes) for phrase in phrases if phrase.found),
        "doubtful": sum(not phrase.found for phrase in phrases),
        "failed": failed,
        "files": [str(path) for path in written],
    }
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    captions = f"{facts['captions']} captions, " if facts["captions"] else ""
    typer.echo(
        f"{facts['photos']} photos, {captions}{facts['phrases']} phrases, {facts['boxes']} boxes; "
        f"{facts['doubtful']} phrases are probably not in their photo and come first"
    )
    for path in written:
        typer.echo(f"wrote {path}")
