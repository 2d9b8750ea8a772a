"""A small drawing of curves between 0 and 1, as SVG text or as a PNG, so that no plotting library is needed."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from deixis.atomic import whole_file

WIDTH, HEIGHT = 420, 300
LEFT, TOP = 48, 56
LEGEND = 190
# Eight colours that stay apart for colour-blind readers (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C00")


@dataclass(frozen=True, slots=True)
class CurveLine:
    """A name and its values at 0, 1, 2 ..."""

    name: str
    values: NDArray[np.float64]
    dashed: bool = False


Panel = tuple[str, list[CurveLine]]


@dataclass(frozen=True, slots=True)
class _Stroke:
    points: list[tuple[float, float]]
    colour: str
    width: float
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class _Words:
    x: float
    y: float
    text: str
    size: int
    anchor: str = "start"


def _shapes(title: str, panels: list[Panel]) -> tuple[list[_Stroke | _Words], int, int]:
    """Lay out everything once; both formats draw the same shapes."""
    shapes: list[_Stroke | _Words] = [_Words(LEFT, 24, title, 14)]
    for number, (name, lines) in enumerate(panels):
        x0, y0 = LEFT + number * (WIDTH + LEGEND + 40), TOP
        longest = max((len(line.values) - 1 for line in lines), default=1) or 1
        shapes.append(_Words(x0, y0 - 10, name, 12))
        for tenth in range(0, 11, 2):
            y = y0 + HEIGHT * (1 - tenth / 10)
            shapes += [
                _Stroke([(x0, y), (x0 + WIDTH, y)], "#dddddd", 1),
                _Words(x0 - 6, y + 4, f"{tenth / 10:.1f}", 11, "end"),
            ]
        for at in _ticks(longest):
            x = x0 + WIDTH * at / longest
            shapes += [
                _Stroke([(x, y0), (x, y0 + HEIGHT)], "#eeeeee", 1),
                _Words(x, y0 + HEIGHT + 16, str(at), 11, "middle"),
            ]
        shapes.append(
            _Words(x0 + WIDTH / 2, y0 + HEIGHT + 34, "regions per image, beside the whole image", 11, "middle")
        )
        for place, line in enumerate(lines):
            colour = COLOURS[place % len(COLOURS)]
            points = [
                (x0 + WIDTH * at / longest, y0 + HEIGHT * (1 - float(value))) for at, value in enumerate(line.values)
            ]
            y = y0 + 14 + 18 * place
            shapes += [
                _Stroke(points, colour, 2, line.dashed),
                _Stroke([(x0 + WIDTH + 12, y - 4), (x0 + WIDTH + 32, y - 4)], colour, 2, line.dashed),
                _Words(x0 + WIDTH + 38, y, line.name, 11),
            ]
    return shapes, LEFT + len(panels) * (WIDTH + LEGEND + 40), TOP + HEIGHT + 48


def _ticks(longest: int) -> list[int]:
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**9) if longest / step <= 10)
    return list(range(0, longest + 1, step))


def curve_svg(title: str, panels: list[Panel]) -> str:
    """Return the drawing as SVG text."""
    shapes, width, height = _shapes(title, panels)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for shape in shapes:
        if isinstance(shape, _Words):
            out.append(
                f'<text x="{shape.x:g}" y="{shape.y:g}" font-size="{shape.size}" text-anchor="{shape.anchor}" '
                f'fill="#222222">{escape(shape.text)}</text>'
            )
        else:
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
            dash = ' stroke-dasharray="6 4"' if shape.dashed else ""
            look = f'fill="none" stroke="{shape.colour}" stroke-width="{shape.width:g}"{dash}'
            out.append(f'<polyline points="{points}" {look}/>')
    return "\n".join([*out, "</svg>\n"])


def save_curve(title: str, panels: list[Panel], path: Path) -> None:
    """Write the drawing as a PNG, at twice the size so that it is sharp."""
    shapes, width, height = _shapes(title, panels)
    image = Image.new("RGB", (2 * width, 2 * height), "white")
    draw = ImageDraw.Draw(image)
    anchors = {"start": "ls", "middle": "ms", "end": "rs"}
    for shape in shapes:
        if isinstance(shape, _Words):
            font: Any = ImageFont.load_default(2 * shape.size)
            draw.text((2 * shape.x, 2 * shape.y), shape.text, "#222222", font, anchor=anchors[shape.anchor])
        else:
            points = [(2 * x, 2 * y) for x, y in shape.points]
            for dash in _dashes(points) if shape.dashed else [points]:
                draw.line(dash, shape.colour, round(2 * shape.width), joint="curve")
    with whole_file(path) as partial:
        image.save(partial, format="PNG")


def _dashes(points: list[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """Cut a line into pieces of 12 pixels with gaps of 8."""
    line = np.asarray(points, dtype=np.float64)
    along = np.concatenate([[0.0], np.hypot(*np.diff(line, axis=0).T).cumsum()])
    pieces = []
    for start in np.arange(0, along[-1], 20.0):
        at = np.array([start, *along[(along > start) & (along < start + 12)], min(start + 12, along[-1])])
        pieces.append(list(zip(np.interp(at, along, line[:, 0]), np.interp(at, along, line[:, 1]), strict=True)))
    return [[(float(x), float(y)) for x, y in piece] for piece in pieces]
