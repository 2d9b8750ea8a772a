"""Labels as people send them back from five tools, and how ``deixis corrections`` and ``deixis review`` read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.fuzz import attacks
from deixis.export import cvat, voc, yolo
from deixis.export.coco import labels as coco_labels
from deixis.export.labelstudio import labels as labelstudio_labels
from deixis.labels.compare import compare
from deixis.labels.read import Album, read_labels
from deixis.labels.training import write_dataset
from deixis.types import GroundedPhrase, GroundedPhrases

FORMS = ("coco.json", "labelstudio.json", "yolo", "voc", "cvat.xml", "answers.jsonl")


def labels(root: Path) -> None:
    """Two photos and their labels in every form, by the writers of ``deixis label``."""
    (root / "photos").mkdir()
    box = (4.0, 5.0, 30.0, 40.0)
    phrase = GroundedPhrase("a cup", (box,), (0,), 0.5, True, 0, 5, (box,), (0.5,))
    answers = [GroundedPhrases(f"{name}.jpg", (64, 48), (phrase,), "a cup", "lite") for name in "ab"]
    for name in "ab":
        (root / "photos" / f"{name}.jpg").write_bytes(attacks.photo("JPEG", (64, 48)))
    (root / "coco.json").write_text(json.dumps(coco_labels(answers)))
    (root / "labelstudio.json").write_text(json.dumps(_done(labelstudio_labels(answers))))
    (root / "cvat.xml").write_text(cvat.document(answers))
    (root / "answers.jsonl").write_text("".join(json.dumps(answer.to_json()) + "\n" for answer in answers))
    for form, files in (("yolo", yolo.files(answers)), ("voc", voc.files(answers))):
        for name, text in files.items():
            (root / form / name).parent.mkdir(parents=True, exist_ok=True)
            (root / form / name).write_text(text)


def _done(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return Label Studio's tasks after a person has accepted every prediction."""
    return [task | {"annotations": [{"result": one["result"]} for one in task["predictions"]]} for task in tasks]


def reads(root: Path) -> list[Callable[[], Any]]:
    """Return ways of reading: every form by itself, compared with the draft and written as training data."""
    return [lambda form=form: _read(root, form) for form in FORMS]  # type: ignore[misc]


def _read(root: Path, form: str) -> None:
    album = Album(root / "photos")
    found = read_labels(root / form, album, everything=True)
    compare(found.photos, found.photos)
    written = root / "photos" / "corrected.jsonl"
    try:
        write_dataset(written, found.photos.values(), album)
    finally:
        written.unlink(missing_ok=True)
