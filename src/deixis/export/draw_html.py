"""Drawings as one HTML page without scripts: pointing at a phrase leaves its boxes alone on the picture."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence

from PIL import Image

from deixis.export.draw import Drawing, Line, colour_of, ink_on

_STYLE = """
body { font: 17px/1.7 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #222;
       background: #fff }
figure { margin: 0 0 3rem }
.pictures { display: flex; flex-wrap: wrap; gap: .6rem }
.picture { position: relative; flex: 1 1 18rem; max-width: 60rem }
.picture img { width: 100%; display: block }
.picture svg { position: absolute; inset: 0; width: 100%; height: 100% }
rect.box { fill: none; stroke-width: 3; vector-effect: non-scaling-stroke }
rect.halo { fill: none; stroke: #fff; stroke-width: 5; vector-effect: non-scaling-stroke }
g.thing { transition: opacity .1s }
mark { border-radius: 4px; padding: .1em .3em; cursor: default }
mark:focus { outline: 3px solid #222 }
mark.none { background: #e2e2e2; color: #222 }
h2 { font-size: 1rem; color: #555; font-weight: normal }
"""


def page(drawings: Sequence[Drawing], title: str) -> str:
    """Return a page with one figure per drawing."""
    most = max((len(drawing.colours) for drawing in drawings), default=0)
    rules = "\n".join(
        f"figure:has(mark.k{n}:hover) g.thing:not(.k{n}), figure:has(mark.k{n}:focus) g.thing:not(.k{n}) "
        "{ opacity: .08 }\n"
        f"mark.k{n} {{ background: {colour_of(n)[0]}; color: {ink_on(colour_of(n)[0])} }}"
        for n in range(most)
    )
    figures = "\n".join(_figure(drawing) for drawing in drawings)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title or 'Deixis')}</title>\n<style>{_STYLE}{rules}\n</style>\n</head>\n"
        f"<body>\n{figures}\n</body>\n</html>\n"
    )


def _figure(drawing: Drawing) -> str:
    pictures = "\n".join(_picture(drawing, at) for at in range(len(drawing.pictures)))
    texts = "\n".join(f"<p>{_marked(line, drawing.colours)}</p>" for line in drawing.lines)
    title = f"<h2>{html.escape(drawing.title)}</h2>\n" if drawing.title else ""
    return f'<figure>\n{title}<div class="pictures">\n{pictures}\n</div>\n<figcaption>{texts}</figcaption>\n</figure>'


def _picture(drawing: Drawing, at: int) -> str:
    picture = drawing.pictures[at]
    colours = drawing.colours
    things = []
    for key, label, (x1, y1, x2, y2) in drawing.boxes_of(at):
        colour, dashed = colour_of(colours[key])
        place = f'x="{x1:.1f}" y="{y1:.1f}" width="{x2 - x1:.1f}" height="{y2 - y1:.1f}"'
        dash = ' stroke-dasharray="9 7"' if dashed else ""
        things.append(
            f'<g class="thing k{colours[key]}"><title>{html.escape(label)}</title><rect class="halo" {place}/>'
            f'<rect class="box" {place} stroke="{colour}"{dash}/></g>'
        )
    about = html.escape(drawing.lines[0].text if drawing.lines else drawing.title, quote=True)
    return (
        f'<div class="picture"><img src="{_data(picture)}" alt="{about}">'
        f'<svg viewBox="0 0 {picture.width} {picture.height}" preserveAspectRatio="none">{"".join(things)}</svg></div>'
    )


def _marked(line: Line, colours: dict[str, int]) -> str:
    parts = []
    at = 0
    for start, end, key in sorted(line.spans):
        if start < at:
            continue
        kind = f"k{colours[key]}" if key in colours else "none"
        focus = ' tabindex="0"' if key in colours else ""
        words = html.escape(line.text[start:end])
        parts += [html.escape(line.text[at:start]), f'<mark class="{kind}"{focus}>{words}</mark>']
        at = end
    return "".join(parts) + html.escape(line.text[at:])


def _data(picture: Image.Image) -> str:
    buffer = io.BytesIO()
    picture.convert("RGB").save(buffer, format="JPEG", quality=88)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
