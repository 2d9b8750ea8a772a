"""The parts of a page: what it shows as JSON, and the document around it with its style, script and policy."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from deixis.export.draw import Drawing, Line, Mark, drawing_of_caption
from deixis.types import GroundedCaption


def drawing_view(drawing: Drawing, number: int) -> dict[str, Any]:
    """Return what ``gallery.js`` shows of a drawing; ``number`` names the blocks of its pictures."""
    about = " ".join(line.text for line in drawing.lines) or drawing.title
    return {
        "title": drawing.title,
        "size": list(drawing.space),
        "texts": [_line_view(line) for line in drawing.lines],
        "marks": _mark_views(drawing),
        "pictures": [
            {"block": f"p{number}-{at}", "size": list(picture.size), "alt": about}
            for at, picture in enumerate(drawing.pictures)
        ],
    }


def clip_view(captions: Sequence[GroundedCaption]) -> dict[str, Any]:
    """Return what ``gallery.js`` shows of a clip and its segments."""
    segments = []
    for caption in captions:
        drawing = drawing_of_caption(caption, ())
        times = caption.frame_times
        segments.append(
            _line_view(drawing.lines[0])
            | {
                "marks": _mark_views(drawing),
                "segment": list(caption.segment or (0.0, max(times, default=0.0))),
                "times": list(times),
            }
        )
    return {"title": "", "size": list(captions[0].size), "segments": segments}


def _line_view(line: Line) -> dict[str, Any]:
    # JavaScript counts characters beyond the first 65,536 (emoji) as two.
    units = [0]
    for letter in line.text:
        units.append(units[-1] + (2 if ord(letter) > 0xFFFF else 1))
    return {"text": line.text, "spans": [[units[start], units[end], key] for start, end, key in sorted(line.spans)]}


def _mark_views(drawing: Drawing) -> list[dict[str, Any]]:
    colours = drawing.colours
    return [_mark_view(mark, colours[mark.key]) for mark in drawing.marks if mark.boxes]


def _mark_view(mark: Mark, number: int) -> dict[str, Any]:
    view: dict[str, Any] = {
        "key": mark.key,
        "text": mark.label,
        "number": number,
        "boxes": [[round(side, 2) for side in box] for box in mark.boxes],
        "frames": list(mark.frames) or [0] * len(mark.boxes),
    }
    if mark.doubted:
        view["doubted"] = True
    if mark.presence is not None:
        view["presence"] = mark.presence
    if mark.sure is not None:
        view["sure"] = mark.sure
    return view


def document(
    answers: dict[str, Any], title: str, plain: Sequence[str], *, few: bool, linked: bool = False
) -> tuple[str, str]:
    """Return the page in two pieces; blocks of data belong between them.

    Args:
        answers: What ``gallery.js`` reads.
        title: The heading.
        plain: The sentences, for browsers without scripts.
        few: Show the answers large, below each other.
        linked: The page may play a clip that lies beside it.
    """
    style, script = _style(), _script()
    policy = "; ".join(
        [
            "default-src 'none'",
            "img-src data:",
            "media-src blob: file: 'self'" if linked else "media-src blob:",
            f"style-src '{digest(style)}'",
            f"script-src '{digest(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    sentences = "".join(f"<li>{html.escape(text)}</li>" for text in plain)
    name = html.escape(title)
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{name}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#cards">Skip to the answers</a>\n'
        f"<header>\n<h1>{name}</h1>\n"
        "<p>Point at a word, or go through them with the Tab key: what it names lights up. A click keeps it lit.</p>\n"
        '<form class="filter" role="search" hidden><label for="filter">Show those that say</label>'
        '<input id="filter" type="search" autocomplete="off"><span id="count" role="status"></span></form>\n'
        f'</header>\n<main id="cards" class="{"one" if few else "many"}"></main>\n'
        f"<noscript><p>Boxes need scripts; these are the sentences.</p><ol>{sentences}</ol></noscript>\n"
        f'<script type="application/json" id="answers">{island(answers)}</script>\n'
        f"<script>{script}</script>\n"
    )
    return head, "</body>\n</html>\n"


def island(data: Any) -> str:
    """Return JSON in which no text can end the element around it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def digest(text: str) -> str:
    """Return what a policy calls a script or a style that may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _style() -> str:
    return "\n" + static_text("look.css") + static_text("gallery.css")


@cache
def _script() -> str:
    return one_script(static_text("look.js"), static_text("gallery.js"))


def one_script(*modules: str) -> str:
    """Return JavaScript modules as one script, those that others import first, in a scope of their own."""
    text = "".join(modules)
    text = re.sub(r"^import .*?;\n", "", text, flags=re.MULTILINE | re.DOTALL)
    return f'\n"use strict";\n{{\n{re.sub(r"^export ", "", text, flags=re.MULTILINE)}}}\n'


def static_text(name: str, room: str = "deixis.export") -> str:
    """Return a file that ships with a room, as text."""
    return (files(room) / "static" / name).read_text(encoding="utf-8")
