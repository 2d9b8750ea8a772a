"""Pages that need nothing beside them: answers with their photos inside, from one to thousands, or a clip.

The file holds the answers as JSON first, then the script that shows them, then the photos as blocks of text. A browser
shows sentences while it still reads, and decodes a photo when it comes near the screen, so thousands open quickly.
Nothing is fetched from anywhere: a policy in the page forbids it, and allows no script but ours.
"""

from __future__ import annotations

import base64
import io
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import IO, Any
from urllib.parse import quote

from PIL import Image

from deixis.atomic import whole_file
from deixis.errors import BadFileError, DeixisError
from deixis.export.draw import Drawing, drawing_of
from deixis.export.page_parts import clip_view, document, drawing_view
from deixis.export.things import Answer
from deixis.images import IMAGE_SUFFIXES, ImageSource, load_image
from deixis.types import GroundedCaption

Item = Answer | tuple[Answer, ImageSource] | Drawing
"""An answer whose ``image`` is a file, an answer with its photo, or a drawing."""

FEW = 24
"""Up to so many answers have their photos large."""
LARGE, SMALL = (1600, 84), (560, 72)
"""Longest side in pixels and WebP quality of the photos of few answers, and of many."""
EMBEDDED_CLIP = 24 * 2**20
_CLIP_TYPES = {".mp4": "video/mp4", ".m4v": "video/mp4", ".mov": "video/mp4", ".webm": "video/webm"}


def write_page(
    path: str | Path, items: Iterable[Item], *, title: str = "Deixis", root: str | Path | None = None
) -> Path:
    """Write answers and their photos as one HTML file that opens offline.

    Args:
        path: The file to write; it is wholly there or not at all.
        items: Answers. They are taken one by one, so thousands need no more memory than a few.
        title: Stands at the top.
        root: The folder that answers' ``image`` names are looked for in, with or without their ending.

    Raises:
        BadFileError: A photo is missing or damaged.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as part, part.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
        _write(out, items, title, None if root is None else Path(root))
    return path


def page_text(items: Iterable[Item], *, title: str = "Deixis") -> str:
    """Return the page of :func:`write_page` as text."""
    out = io.StringIO()
    _write(out, items, title, None)
    return out.getvalue()


def write_clip_page(
    path: str | Path,
    clip: str | Path,
    captions: Sequence[GroundedCaption],
    *,
    title: str | None = None,
    embed: bool | None = None,
) -> Path:
    """Write a page with a clip, the sentences of its segments, and boxes that move with the time.

    Args:
        path: The file to write.
        clip: The clip, in a form browsers play (MP4, WebM).
        captions: One for each segment, with ``segment`` and ``frame_times`` in seconds of the clip.
        title: Stands at the top; the clip's name without it.
        embed: Put the clip into the page, or link to it where it lies. None embeds clips up to 24 MB.
    """
    path, clip = Path(path), Path(clip)
    if not captions:
        raise DeixisError(f"there are no captions of {clip} to show")
    try:
        size = clip.stat().st_size
        data = clip.read_bytes() if (embed if embed is not None else size <= EMBEDDED_CLIP) else None
    except OSError as error:
        raise BadFileError(f"{clip} cannot be read: {error}") from error
    view = clip_view(captions)
    blocks: list[str] = []
    if data is None:
        view["address"] = "./" + quote(os.path.relpath(clip.resolve(), path.resolve().parent).replace(os.sep, "/"))
    else:
        view["block"] = "clip"
        blocks = [block("clip", _CLIP_TYPES.get(clip.suffix.lower(), "video/mp4"), data)]
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = [caption.text for caption in captions]
    with whole_file(path) as part, part.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
        head, end = document({"clip": view}, title or clip.name, plain, few=True, linked=data is None)
        out.writelines([head, *blocks, end])
    return path


def _write(out: IO[str], items: Iterable[Item], title: str, root: Path | None) -> None:
    rest = iter(items)
    first = list(islice(rest, FEW + 1))
    few = len(first) <= FEW
    views: list[dict[str, Any]] = []
    with tempfile.TemporaryFile("w+", encoding="ascii") as photos:
        for drawing in _drawings(chain(first, rest), root):
            views.append(drawing_view(drawing, len(views)))
            for at, picture in enumerate(drawing.pictures):
                photos.write(block(views[-1]["pictures"][at]["block"], "image/webp", small_photo(picture, few=few)))
        photos.seek(0)
        plain = [line["text"] for view in views for line in view["texts"]]
        head, end = document({"items": views}, title, plain, few=few)
        out.write(head)
        out.writelines(photos)
        out.write(end)


def _drawings(items: Iterable[Item], root: Path | None) -> Iterator[Drawing]:
    for item in items:
        if isinstance(item, Drawing):
            yield item
            continue
        answer, photo = item if isinstance(item, tuple) else (item, find_photo(item.image, root))
        # A page is handed on: it names the photo, not the folders of the machine it was made on.
        yield replace(drawing_of(answer, [load_image(photo)]), title=PurePath(answer.image).name)


def find_photo(name: str, root: Path | None = None) -> Path:
    """Return the file of an image called by its path, or by its name with or without ending in the folder ``root``."""
    places = [Path(name)] if root is None else [root / name, root / Path(name).name]
    for place in places:
        for found in (place, *(place.with_name(place.name + ending) for ending in IMAGE_SUFFIXES)):
            if found.is_file():
                return found
    where = f"in {root}" if root is not None else "here"
    raise BadFileError(f"there is no photo {name!r} {where}: say which folder the photos are in (--photos FOLDER)")


def small_photo(picture: Image.Image, *, few: bool = False) -> bytes:
    """Return a photo as WebP, small enough to be one of many on a page, or larger where they are few."""
    side, quality = LARGE if few else SMALL
    scale = side / max(picture.size)
    if scale < 1:
        size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
        picture = picture.convert("RGB").resize(size, Image.Resampling.BICUBIC, reducing_gap=2.0)
    out = io.BytesIO()
    picture.convert("RGB").save(out, format="WEBP", quality=quality, method=4 if few else 2)
    return out.getvalue()


def block(name: str, kind: str, data: bytes) -> str:
    """Return bytes as an element that a browser keeps as text and does nothing with."""
    return f'<script type="text/plain" id="{name}" data-type="{kind}">{base64.b64encode(data).decode()}</script>\n'
