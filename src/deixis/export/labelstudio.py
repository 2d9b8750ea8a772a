"""Label Studio: tasks with pre-annotations (predictions), and the labelling interface that shows them."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from deixis.export.coco import as_xywh
from deixis.export.review import doubt, in_review_order
from deixis.export.things import Answer, Thing, only_photos, relative, text_of, things_of

LOCAL_FILES = "/data/local-files/?d="
"""What Label Studio serves local files by; set LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT to the folder of the photos."""


def tasks(answers: Sequence[Answer], *, prefix: str = LOCAL_FILES) -> list[dict[str, Any]]:
    """Return one task per answer. Boxes are labelled with their noun, and carry their whole phrase as text.

    Args:
        answers: Captions or phrases of photos.
        prefix: Goes before the photo's name, which is quoted and, if absolute, taken from the root of the disk; steps
            up (``..``) at its beginning are left out. Names that are addresses already stay as they are.
    """
    return [_task(answer, prefix) for answer in only_photos(answers, "labelstudio")]


def labels(answers: Sequence[Answer], *, prefix: str = LOCAL_FILES) -> list[dict[str, Any]]:
    """Return draft labels for review: the tasks with the most doubtful first; a task's score is its least sure box."""
    return tasks(in_review_order(answers), prefix=prefix)


def config(names: Sequence[str]) -> str:
    """Return the labelling interface (XML) for tasks with these labels."""
    rows = "\n".join(f"    <Label value={quoteattr(name)}/>" for name in names)
    return (
        '<View>\n  <Text name="sentence" value="$sentence"/>\n  <Image name="image" value="$image"/>\n'
        f'  <RectangleLabels name="label" toName="image">\n{rows}\n  </RectangleLabels>\n'
        '  <TextArea name="phrase" toName="image" perRegion="true" editable="true" displayMode="region-list"/>\n'
        "</View>\n"
    )


def _below_root(name: str) -> str:
    """Return a photo's path below the folder that is served: a server refuses paths that lead out of it."""
    parts = PurePosixPath(posixpath.normpath(name)).parts
    return "/".join(part for part in parts if part not in ("..", "/", "//"))


def _task(answer: Answer, prefix: str) -> dict[str, Any]:
    found = things_of(answer, doubtful=True)
    return {
        "data": {
            "image": answer.image if "://" in answer.image else prefix + quote(_below_root(answer.image)),
            "sentence": text_of(answer) or ", ".join(dict.fromkeys(thing.text for thing in found)),
            "image_id": answer.image,
            "doubt": doubt(answer),
        },
        "predictions": [
            {
                "model_version": answer.model or "deixis",
                "score": 1.0 - doubt(answer),
                "result": [part for at, thing in enumerate(found) for part in _region(f"box{at}", thing, answer.size)],
            }
        ],
    }


def _region(name: str, thing: Thing, size: tuple[int, int]) -> list[dict[str, Any]]:
    x, y, width, height = (100.0 * side for side in as_xywh(relative(thing.box, size)))
    shared = {
        "id": name,
        "to_name": "image",
        "original_width": size[0],
        "original_height": size[1],
        "image_rotation": 0,
    }
    place = {"x": x, "y": y, "width": width, "height": height, "rotation": 0}
    box = shared | {
        "type": "rectanglelabels",
        "from_name": "label",
        "score": thing.score,
        "value": place | {"rectanglelabels": [thing.label]},
    }
    phrase = shared | {"type": "textarea", "from_name": "phrase", "value": place | {"text": [thing.text]}}
    return [box, phrase]
