"""The page on which a person corrects draft boxes: one HTML file that opens offline and saves a file that we read back.

Photos come in the order of doubt. The file it saves is COCO instances, in which ``"reviewed"`` says which photos a
person has called done; ``deixis corrections`` reads it, and so does this module, to go on later.
"""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from deixis.atomic import whole_file
from deixis.errors import DeixisError
from deixis.export.page import block, small_photo
from deixis.export.page_parts import digest, island, one_script, static_text
from deixis.geometry import iou
from deixis.images import load_image
from deixis.labels.compare import SAME
from deixis.labels.read import Album, LabelledThing, Labels, PhotoLabels

ROOM = "deixis.labels"
KEYS = (
    (". ,", "next box, box before"),
    ("arrows", "move the box; with Shift its lower right corner; with Alt by one pixel"),
    ("Enter", "name it"),
    ("Delete", "delete it"),
    ("K", "keep a doubtful box (dotted)"),
    ("N", "new box; or draw one with the mouse"),
    ("Z", "undo"),
    ("D", "done: everything on this photo is right; on to the next"),
    ("Page Up, Page Down", "other photos"),
    ("S", "save"),
)


def write_review(path: Path, labels: Labels, album: Album, *, limit: int | None = None, saves: str) -> int:
    """Write the page and return how many photos are on it: the most doubtful, those that are done last.

    Args:
        path: The file to write.
        labels: The draft, or a file that the page saved before (read with ``everything=True``).
        album: The photos.
        limit: At most so many photos.
        saves: The name of the file that the page saves.
    """
    done = {photo.image for photo in labels.photos.values() if photo.reviewed and labels.marked}
    photos = sorted(labels.photos.values(), key=lambda photo: (photo.image in done, -doubt_of(photo)))[:limit]
    if not photos:
        raise DeixisError(f"{labels.path} has no photo to look at")
    task: dict[str, Any] = {"photos": [_view(photo, photo.image in done) for photo in photos], "file": saves}
    task["mark"] = hashlib.sha256(json.dumps(task, sort_keys=True).encode()).hexdigest()[:16]
    names = sorted({thing.label for photo in labels.photos.values() for thing in photo.things})
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as part, part.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
        head, end = _document(task, names, labels.path.name)
        out.write(head)
        for at, photo in enumerate(photos):
            out.write(block(f"p{at}", "image/webp", _photo(album, photo)))
        out.write(end)
    return len(photos)


def doubt_of(photo: PhotoLabels) -> float:
    """Return how much a photo needs a look: what the draft says, else by its least sure box."""
    scores = [0.0 if not thing.trusted else thing.score for thing in photo.things if thing.score is not None]
    return max(photo.doubt, 1.0 - min(scores, default=1.0))


def _photo(album: Album, photo: PhotoLabels) -> bytes:
    picture = load_image(album.files[photo.image])
    picture.thumbnail((1280, 1280), Image.Resampling.BICUBIC)
    return small_photo(picture, few=True)


def _view(photo: PhotoLabels, reviewed: bool) -> dict[str, Any]:
    boxes = merged(photo.things)
    found = {thing.phrase for thing in photo.things if thing.trusted}
    absent = dict.fromkeys(
        thing.phrase for thing in photo.things if not thing.trusted and thing.phrase and thing.phrase not in found
    )
    return {
        "image": photo.image,
        "size": list(photo.size),
        "reviewed": reviewed,
        "absent": list(absent),
        "boxes": boxes,
    }


def merged(things: Sequence[LabelledThing]) -> list[dict[str, Any]]:
    """Return each box once, with all the words that name it: five captions name one dog."""
    found: list[tuple[LabelledThing, dict[str, Any]]] = []
    for thing in things:
        box = next((view for known, view in found if _same(known, thing)), None)
        if box is None:
            box = {"label": thing.label, "box": [round(side, 2) for side in thing.box], "mentions": []}
            if thing.score is not None:
                box["score"] = round(thing.score, 3)
            if not thing.trusted:
                box["doubted"] = True
            found.append((thing, box))
        mention: dict[str, Any] = {"phrase": thing.phrase} if thing.phrase is not None else {}
        if thing.sentence is not None and thing.span is not None:
            mention |= {"sentence": thing.sentence, "start": thing.span[0], "end": thing.span[1]}
        if mention and mention not in box["mentions"]:
            box["mentions"].append(mention)
    return [view for _, view in found]


def _same(one: LabelledThing, other: LabelledThing) -> bool:
    if (one.label, one.trusted) != (other.label, other.trusted):
        return False
    return float(iou(np.array([one.box]), np.array([other.box]))[0, 0]) > SAME


def _document(task: dict[str, Any], names: Sequence[str], title: str) -> tuple[str, str]:
    """Return the page in two pieces; the photos belong between them, and the script comes last."""
    style = "\n" + static_text("look.css") + static_text("review.css", ROOM)
    own = (static_text(name, ROOM) for name in ("boxes.js", "hands.js", "review.js"))
    script = one_script(static_text("look.js"), *own)
    policy = "; ".join(
        [
            "default-src 'none'",
            "img-src data:",
            f"style-src '{digest(style)}'",
            f"script-src '{digest(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    labels = "".join(f'<option value="{html.escape(name)}">' for name in names)
    keys = "".join(f"<dt><kbd>{html.escape(key)}</kbd></dt><dd>{html.escape(what)}</dd>" for key, what in KEYS)
    name = html.escape(title)
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>Review {name}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<header><h1>Review {name}</h1><div class="far"><span id="progress" role="status"></span>'
        '<progress id="meter" aria-label="Photos that are done"></progress>'
        '<button id="save" type="button" class="strong">Save</button></div></header>\n'
        '<main class="desk"><section aria-label="Photo"><div class="stage" id="stage"><img id="picture" alt="">'
        '<svg id="overlay" preserveAspectRatio="none" aria-hidden="true"></svg></div>'
        '<p id="status" role="status"></p></section>\n'
        '<section class="panel" aria-label="Boxes"><div class="row"><h2 id="name"></h2><span id="state"></span></div>'
        '<p id="absent"></p><ol id="boxes"></ol><p id="none" class="hint">No boxes here yet.</p>'
        '<div class="row"><button id="add" type="button">Add a box</button>'
        '<button id="undo" type="button">Undo</button></div>'
        '<div class="row"><button id="previous" type="button">Previous</button>'
        '<button id="next" type="button">Next</button>'
        '<button id="done" type="button" class="strong">Done, next photo</button></div>'
        f'<details><summary>Keys</summary><dl class="keys">{keys}</dl></details></section></main>\n'
        f'<datalist id="labels">{labels}</datalist>\n'
        "<noscript><p>Correcting boxes needs scripts.</p></noscript>\n"
        f'<script type="application/json" id="task">{island(task)}</script>\n'
    )
    return head, f"<script>{script}</script>\n</body>\n</html>\n"
