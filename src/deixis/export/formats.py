"""The formats `deixis export` writes: one table, from a name to the function that makes the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deixis.atomic import whole_folder, write_text
from deixis.errors import DeixisError
from deixis.export import coco, cvat, fiftyone, kosmos, labelstudio, supervision, table, voc, yolo
from deixis.export.things import Answer, labels_in
from deixis.registry import find_class, is_outside
from deixis.text.classes import ObjectClasses


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What some formats want to know besides the answers."""

    like: Path | None = None
    """COCO instances or captions file whose image and category ids are used."""
    classes: Path | None = None
    """Object classes of a submission, one a line."""
    prefix: str = labelstudio.LOCAL_FILES
    """Label Studio: what goes before a photo's name."""


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """``make`` returns the texts of the files: ``""`` is the file itself, any other key an ending of one beside it.

    Of a format that is a folder the keys are the names of the files in it.
    """

    help: str
    make: Callable[[Sequence[Answer], ExportOptions], Mapping[str, str]]
    folder: bool = False


def _ids(answers: Sequence[Answer], options: ExportOptions) -> coco.CocoIds:
    return coco.CocoIds.of(answers) if options.like is None else coco.CocoIds.read(options.like)


def _labelstudio(answers: Sequence[Answer], options: ExportOptions) -> dict[str, str]:
    names = labels_in(answers, doubtful=True)
    return {
        "": _json(labelstudio.tasks(answers, prefix=options.prefix)),
        ".config.xml": labelstudio.config(names),
    }


def _submission(answers: Sequence[Answer], options: ExportOptions) -> dict[str, str]:
    from deixis.export import activitynet  # it alone needs torch, which takes seconds to import

    classes = None if options.classes is None else ObjectClasses.from_list(options.classes)
    return {"": _json(activitynet.submission(answers, classes))}


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False) + "\n"


def _lines(rows: Sequence[Any]) -> str:
    return "".join(_json(row) for row in rows)


FORMATS: dict[str, ExportFormat] = {
    "json": ExportFormat("our own JSON, one answer a line", lambda a, _: {"": _lines([x.to_json() for x in a])}),
    "coco": ExportFormat(
        "COCO instances: images, categories, boxes", lambda a, o: {"": _json(coco.dataset(a, _ids(a, o)))}
    ),
    "coco-results": ExportFormat(
        "COCO detection results, for COCOeval", lambda a, o: {"": _json(coco.results(a, _ids(a, o)))}
    ),
    "coco-captions": ExportFormat("COCO caption results", lambda a, o: {"": _json(coco.captions(a, _ids(a, o)))}),
    "kosmos": ExportFormat("sentences with Kosmos-2's tags, one a line", lambda a, _: {"": _lines(kosmos.records(a))}),
    "labelstudio": ExportFormat("Label Studio tasks with predictions, and their interface beside", _labelstudio),
    "fiftyone": ExportFormat(
        "labels.json of a FiftyOneImageDetectionDataset", lambda a, _: {"": _json(fiftyone.labels(a))}
    ),
    "yolo": ExportFormat(
        "a folder in YOLO's form: labels/, classes.txt, data.yaml", lambda a, _: yolo.files(a), folder=True
    ),
    "voc": ExportFormat("a folder in Pascal VOC's form: an XML file a photo", lambda a, _: voc.files(a), folder=True),
    "cvat": ExportFormat("CVAT for images 1.1, one XML file", lambda a, _: {"": cvat.document(a)}),
    "supervision": ExportFormat(
        "the fields of sv.Detections, one photo a line", lambda a, _: {"": _lines(supervision.records(a))}
    ),
    "anet": ExportFormat("submission to ActivityNet-Entities (photos: GVD's Flickr30k)", _submission),
    "csv": ExportFormat("a table with a row for every box", lambda a, _: {"": table.table(a)}),
}


def export_format(name: str) -> ExportFormat:
    """Return a format by its name, or as ``package.module:FORMAT``, an :class:`ExportFormat` of your own."""
    if name not in FORMATS and not is_outside(name):
        raise DeixisError(f"there is no format {name!r}: choose one of {', '.join(FORMATS)} or html")
    found = FORMATS[name] if name in FORMATS else find_class("export", name, "the format's name")
    if not isinstance(found, ExportFormat):
        raise DeixisError(f"{name} is no deixis.export.formats.ExportFormat")
    return found


def write_export(
    path: str | Path, answers: Sequence[Answer], format: str, options: ExportOptions | None = None
) -> list[Path]:
    """Write answers in a format, and return the files; each is wholly there or not at all."""
    if not answers:
        raise DeixisError("there are no predictions to export")
    path = Path(path)
    kind = export_format(format)
    texts = kind.make(answers, options or ExportOptions())
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind.folder:
        with whole_folder(path) as folder:
            for name, text in texts.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8", errors="replace")
        return [path]
    written = []
    for ending, text in texts.items():
        target = path.with_suffix(ending) if ending else path
        write_text(target, text)
        written.append(target)
    return written
