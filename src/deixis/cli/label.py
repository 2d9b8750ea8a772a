"""``deixis label``: draft boxes for every phrase of a captioned dataset, for a person to review."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deixis.cli.places import EngineOption, ProcessesOption

if TYPE_CHECKING:
    from deixis.types import GroundedPhrases

Format = Literal["coco", "labelstudio", "json"]


def label(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A folder of photos with captions, or any dataset.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file of labels to write.")],
    format: Annotated[Format, typer.Option(help="What the labels are for.")] = "coco",
    split: Annotated[str | None, typer.Option(help="Only this split.")] = None,
    model: Annotated[str, typer.Option(help="A run, checkpoint or bundle folder, a hub name, or lite.")] = "lite",
    grounder: Annotated[str | None, typer.Option(help="Take the grounder of this run or bundle.")] = None,
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
    """Draft boxes for every phrase of every caption, the doubtful ones first.

    Stopped in the middle, the same command goes on where it was; the file of labels appears when all is done.
    """
    from rich.console import Console
    from rich.progress import Progress

    from deixis.answering.label import draft_labels, open_drafts
    from deixis.answering.load import load
    from deixis.answering.work import Place
    from deixis.cli.outputs import check_output
    from deixis.data.locations import find
    from deixis.data.open import open_dataset
    from deixis.errors import DeixisError

    check_output(output, "labels.json")
    dataset = open_dataset(find(data, "data"), reader)
    ids = dataset.ids(split)[:limit]
    loaded = load(model, grounder=grounder, device=device)
    failed = 0

    def note(image: str, error: DeixisError) -> None:
        nonlocal failed
        failed += 1
        typer.echo(f"deixis: {image}: {error}", err=True)

    with open_drafts(output, loaded) as drafts, Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("photos", total=len(ids))
        place = Place(engine, processes, device)
        for count in draft_labels(loaded, dataset, ids, drafts, note, place=place, source=(model, grounder)):
            bar.advance(task, count)
        answers = list(drafts.answers.values())
        if not answers:
            raise DeixisError(f"{dataset.path} has no photo with a caption that names something: nothing to label")
        written = write_labels(output, answers, format, prefix)
        left = drafts.path
    left.unlink(missing_ok=True)
    phrases = [phrase for answer in answers for phrase in answer.phrases]
    facts: dict[str, Any] = {
        "photos": len({answer.image for answer in answers}),
        "captions": len(answers),
        "phrases": len(phrases),
        "doubtful": sum(not phrase.found for phrase in phrases),
        "failed": failed,
        "files": [str(path) for path in written],
    }
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
    else:
        typer.echo(
            f"{facts['photos']} photos, {facts['captions']} captions, {facts['phrases']} phrases; "
            f"{facts['doubtful']} are probably not in their photo and come first"
        )
        for path in written:
            typer.echo(f"wrote {path}")
    if failed:
        raise typer.Exit(2)


def write_labels(path: Path, answers: Sequence[GroundedPhrases], format: Format, prefix: str | None) -> list[Path]:
    """Write drafts in review order, and return the files' names."""
    from deixis.atomic import write_text
    from deixis.export import coco, labelstudio
    from deixis.export.review import in_review_order
    from deixis.export.things import labels_in

    path.parent.mkdir(parents=True, exist_ok=True)
    if format == "json":
        ordered = in_review_order(answers)
        write_text(path, "".join(json.dumps(answer.to_json(), ensure_ascii=False) + "\n" for answer in ordered))
        return [path]
    if format == "coco":
        write_text(path, json.dumps(coco.labels(answers), ensure_ascii=False) + "\n")
        return [path]
    tasks = labelstudio.labels(answers, prefix=labelstudio.LOCAL_FILES if prefix is None else prefix)
    interface = path.with_suffix(".config.xml")
    write_text(interface, labelstudio.config(labels_in(answers, doubtful=True)))
    write_text(path, json.dumps(tasks, ensure_ascii=False) + "\n")
    return [path, interface]
