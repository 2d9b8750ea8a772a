"""Answers in a notebook: the photo, its boxes and its words, which light each other up under the mouse or the Tab key.

Style alone does that (CSS ``:has``), no script: notebooks, editors and pages that show them differ in which scripts
they let run, and agree on styles. Where even styles are taken out, the photo and the sentence remain.
"""

from __future__ import annotations

import base64
import hashlib
import html
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from deixis.answering.photos import read_photo
from deixis.atomic import write_json
from deixis.errors import DeixisError
from deixis.export.draw import Drawing, Line, Mark, colour_of, drawing_of, ink_on
from deixis.export.page import small_photo
from deixis.export.things import Answer
from deixis.types import GroundedCaption

WIDTH = 640
"""The widest a photo is shown, in pixels of the screen."""


def draw(answer: Answer, photo: Any = None, *, width: int = 960) -> Image.Image:
    """Return the photo with its boxes, and the text below."""
    return drawn(answer, photo).to_image(width=width)


def show(answer: Answer, photo: Any = None) -> None:
    """Show an answer where one is: in a notebook below the cell, elsewhere in the picture viewer of the desktop."""
    if in_notebook():
        from importlib import import_module

        face = import_module("IPython.display")
        face.display(face.HTML(html_of(answer, photo)))
    else:
        draw(answer, photo).show(title=answer.image)


def save(answer: Answer, photo: Any = None, *, path: Path) -> Path:
    """Write an answer as a page, a picture or our JSON, by the ending of the name."""
    kind = path.suffix.lower()
    if kind == ".json":
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, answer.to_json())
        return path
    if kind not in (".png", ".html"):
        raise DeixisError(f"an answer is saved as .html, .png or .json, not as {path.name!r}")
    return drawn(answer, photo).save(path)


def html_or_none(answer: Answer, photo: Any = None) -> str | None:
    """Return what a notebook shows, or None where there is no photo to show: a notebook then prints the answer."""
    try:
        return html_of(answer, photo)
    except DeixisError:
        return None


def html_of(answer: Answer, photo: Any = None) -> str:
    """Return an answer as a piece of HTML that needs nothing beside it."""
    drawing = drawn(answer, photo)
    picture = drawing.pictures[0]
    data = base64.b64encode(small_photo(picture)).decode()
    width, height = drawing.space
    name = "deixis-" + hashlib.sha256(f"{data}{drawing.lines}{drawing.marks}".encode()).hexdigest()[:10]
    colours = drawing.colours
    about = html.escape(" ".join(line.text for line in drawing.lines))
    groups = "".join(_group(mark, colours[mark.key]) for mark in _large_first(drawing))
    lines = "".join(f'<p class="said">{_line(line, drawing, colours)}</p>' for line in drawing.lines)
    shown = min(WIDTH, max(320, picture.width))
    return (
        f'<div class="deixis" id="{name}" style="max-width:{shown}px"><style>{_style(name, drawing)}</style>'
        f'<div class="stage"><img alt="{about}" src="data:image/webp;base64,{data}">'
        f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" aria-hidden="true">{groups}</svg></div>'
        f"{lines}</div>"
    )


def drawn(answer: Answer, photo: Any = None) -> Drawing:
    """Return an answer with its photo, as a drawing."""
    if isinstance(answer, GroundedCaption) and answer.segment is not None:
        raise DeixisError(
            f"{answer.image} is a clip: `deixis video CLIP --html page.html` shows it with boxes that move"
        )
    return drawing_of(answer, [photo_of(answer, photo)])


def photo_of(answer: Answer, photo: Any = None) -> Image.Image:
    """Return the photo of an answer: the one given, the one it keeps, or the file that it names."""
    source = photo if photo is not None else answer.photo
    if source is None:
        source = Path(answer.image)
        if not source.is_file():
            raise DeixisError(
                f"there is no photo {answer.image!r} here to draw on: give it, such as answer.draw('photo.jpg')"
            )
    return Image.fromarray(read_photo(source))


def in_notebook() -> bool:
    """Whether somebody looks at this in a notebook rather than a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell" or "google.colab" in sys.modules


def _large_first(drawing: Drawing) -> list[Mark]:
    """Return the marks with boxes, the largest first, so that small ones lie on top and can be pointed at."""

    def area(mark: Mark) -> float:
        return max((x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in mark.boxes)

    return sorted((mark for mark in drawing.marks if mark.boxes), key=area, reverse=True)


def _group(mark: Mark, number: int) -> str:
    colour, dashed = colour_of(number)
    dashes = ' stroke-dasharray="9 7"' if dashed or mark.doubted else ""
    rects = []
    for x1, y1, x2, y2 in mark.boxes:
        place = f'x="{x1:.1f}" y="{y1:.1f}" width="{x2 - x1:.1f}" height="{y2 - y1:.1f}" rx="2"'
        rects += [f'<rect class="halo" {place}/>', f'<rect class="line" {place} stroke="{colour}"{dashes}/>']
    return f'<g class="t{number}{" doubted" if mark.doubted else ""}">{"".join(rects)}</g>'


def _line(line: Line, drawing: Drawing, colours: Mapping[str, int]) -> str:
    marks = {mark.key: mark for mark in drawing.marks}
    parts, at = [], 0
    for start, end, key in sorted(line.spans):
        if start < at:  # inside an earlier one
            continue
        parts.append(html.escape(line.text[at:start]))
        text = html.escape(line.text[start:end])
        if key in colours:
            mark = marks[key]
            doubted = " doubted" if mark.doubted else ""
            told = html.escape(f"{'doubtful: ' if mark.doubted else ''}{mark.caption}")
            parts.append(f'<span class="w t{colours[key]}{doubted}" tabindex="0" title="{told}">{text}</span>')
        else:
            parts.append(text)
        at = end
    return "".join([*parts, html.escape(line.text[at:])])


def _style(name: str, drawing: Drawing) -> str:
    """Return the rules of one answer; each begins with its id, so that answers of one notebook do not mix."""
    rules = [
        "{font:16px/1.5 system-ui,sans-serif;margin:.4em 0}",
        " .stage{position:relative}",
        " img{display:block;width:100%;margin:0}",
        " svg{position:absolute;inset:0;width:100%;height:100%}",
        " rect{fill:none;vector-effect:non-scaling-stroke;pointer-events:all}",
        " .halo{stroke:#fff;stroke-width:5;stroke-opacity:.85}",
        " .line{stroke-width:3}",
        " g{transition:opacity .12s}",
        " .said{margin:.5em 0 0}",
        " .w{cursor:pointer;border-radius:4px;padding:0 .15em;border-bottom:.16em solid transparent}",
        " .w.doubted{border-bottom:.12em dotted currentColor}",
        " .w.doubted::after{content:'?';font-size:.65em;vertical-align:super}",
        " g.doubted{opacity:0;pointer-events:none}",
    ]
    for mark in drawing.marks:
        if not mark.boxes:
            continue
        number = drawing.colours[mark.key]
        colour, dashed = colour_of(number)
        lit = f":has(.t{number}:hover,.w.t{number}:focus)"
        if not mark.doubted:
            line = "dashed" if dashed else "solid"
            rules.append(f" .w.t{number}{{border-bottom:.16em {line} {colour};background:{colour}29}}")
        rules += [
            f"{lit} g:not(.t{number}){{opacity:.1}}",
            f"{lit} g.t{number}{{opacity:1}}",
            f"{lit} .w.t{number}{{background:{colour};color:{ink_on(colour)}}}",
        ]
    return "".join(f"#{name}{rule}" for rule in rules)
