"""``deixis corrections``: what a person changed in draft labels, and training data made of the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from deixis.labels.compare import Changes
    from deixis.labels.read import Labels


def corrections(
    corrected: Annotated[
        Path, typer.Argument(metavar="CORRECTED", help="Labels as a person left them: COCO, Label Studio, YOLO, …")
    ],
    photos: Annotated[Path, typer.Option(help="The folder of the photos.")],
    draft: Annotated[Path | None, typer.Option(help="What `deixis label` wrote, to say what was changed.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write training data: a .jsonl file in the folder of the photos."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Read corrected labels back: say what was changed, and make training data of them.

    The form is recognised: COCO and our review page, Label Studio's JSON, folders of YOLO or Pascal VOC, CVAT's XML.
    Then: deixis train grounding/own:corrected data.dataset=PHOTOS/corrected.jsonl -o RUN
    """
    from deixis.cli.outputs import check_output
    from deixis.labels.compare import compare
    from deixis.labels.read import Album, read_labels
    from deixis.labels.training import write_dataset

    check_output(output, "corrected.jsonl")
    album = Album(photos)
    labels = read_labels(corrected, album)
    changes = None if draft is None else compare(read_labels(draft, album).photos, labels.photos)
    written = 0 if output is None else write_dataset(output, labels.photos.values(), album)
    if as_json:
        typer.echo(json.dumps(_facts(labels, changes, output, written), ensure_ascii=False))
        return
    boxes = sum(len(photo.things) for photo in labels.photos.values())
    left = f"; {labels.unreviewed} photos nobody has looked at" if labels.unreviewed else ""
    typer.echo(f"{corrected} ({labels.format}): {len(labels.photos)} photos, {boxes} boxes{left}")
    for line in _report(changes) if changes is not None else ():
        typer.echo(line)
    for kind in labels.problems.kinds:
        places = "; ".join(labels.problems.places(kind, 2))
        typer.echo(f"deixis: {labels.problems.count(kind)} x {kind}, such as {places}", err=True)
    if output is not None:
        typer.echo(f"wrote {output}: {written} photos to train on with human boxes (supervision)")


def _report(changes: Changes) -> list[str]:
    """Return what was changed, for people."""
    overlap = "" if changes.mean_overlap is None else f" (mean IoU with the draft {changes.mean_overlap:.2f})"
    lines = [
        f"{changes.changed_photos} of {changes.photos} photos changed: {changes.kept} boxes kept, "
        f"{changes.moved} moved{overlap}, {changes.relabelled} relabelled, {changes.deleted} deleted, "
        f"{changes.added} added"
    ]
    lines += [f"  {old} became {new}: {count}" for (old, new), count in changes.renamed.items()]
    if changes.new_labels:
        listed = ", ".join(f"{label} ({count})" for label, count in changes.new_labels.items())
        lines.append(f"labels that the draft does not know: {listed}")
    return lines


def _facts(labels: Labels, changes: Changes | None, output: Path | None, written: int) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "format": labels.format,
        "photos": len(labels.photos),
        "boxes": sum(len(photo.things) for photo in labels.photos.values()),
        "unreviewed": labels.unreviewed,
        "problems": {kind: labels.problems.count(kind) for kind in labels.problems.kinds},
    }
    if changes is not None:
        facts["changes"] = {
            "photos": changes.changed_photos,
            "kept": changes.kept,
            "moved": changes.moved,
            "mean_overlap": changes.mean_overlap,
            "relabelled": [{"from": old, "to": new, "count": count} for (old, new), count in changes.renamed.items()],
            "deleted": changes.deleted,
            "added": changes.added,
            "new_labels": changes.new_labels,
        }
    if output is not None:
        facts |= {"file": str(output), "training_photos": written}
    return facts
