"""Small plots as inline SVG, written by hand so that a report needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_WIDTH = 460
_BAR = 22
_INK, _GRID, _FILL = "#222", "#ddd", "#3b6ea8"
_COLOURS = ("#b5533c", "#d98e32", "#3f8f5b", "#3b6ea8", "#8a8a8a")


def bars(title: str, rows: Sequence[tuple[str, float, float | None, float | None]]) -> str:
    """Draw one bar per (name, value, low, high), values from 0 to 1 shown in per cent; whiskers where known."""
    left, right = 150, 60
    most = max([high if high is not None else value for _, value, _, high in rows] + [1e-9])
    scale = (_WIDTH - left - right) / most
    parts = []
    for at, (name, value, low, high) in enumerate(rows):
        y = 8 + at * _BAR
        middle = y + _BAR / 2 - 2
        parts.append(f'<text x="{left - 8}" y="{middle + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{value * scale:.1f}" height="{_BAR - 6}" fill="{_FILL}"/>')
        if low is not None and high is not None:
            parts.append(
                f'<line x1="{left + low * scale:.1f}" x2="{left + high * scale:.1f}" y1="{middle:.1f}" '
                f'y2="{middle:.1f}" stroke="{_INK}"/>'
            )
        end = left + (high if high is not None else value) * scale
        parts.append(f'<text x="{end + 6:.1f}" y="{middle + 4:.1f}">{100 * value:.1f}</text>')
    return _svg(title, parts, 16 + len(rows) * _BAR)


def curve(title: str, points: Sequence[tuple[float, float]], across: str) -> str:
    """Draw y (0 to 1, shown in per cent) over x as a line with its points marked."""
    left, top, height = 46, 12, 150
    xs = [x for x, _ in points]
    span = max(max(xs) - min(xs), 1e-9)
    place = [(left + (x - min(xs)) / span * (_WIDTH - left - 20), top + (1 - y) * height) for x, y in points]
    parts = []
    for tick in (0, 0.25, 0.5, 0.75, 1):
        y = top + (1 - tick) * height
        parts.append(f'<line x1="{left}" x2="{_WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_GRID}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * tick:.0f}</text>')
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in place)
    parts.append(f'<polyline points="{line}" fill="none" stroke="{_FILL}" stroke-width="2"/>')
    for (x, y), (shown, value) in zip(place, points, strict=True):
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_FILL}"><title>{100 * value:.1f}</title></circle>'
        )
        parts.append(f'<text x="{x:.1f}" y="{top + height + 16}" text-anchor="middle">{shown:g}</text>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{top + height + 32}" text-anchor="middle">{escape(across)}</text>')
    return _svg(title, parts, top + height + 40)


def shares(title: str, rows: Sequence[tuple[str, float]]) -> str:
    """Draw shares that sum to 1 as one band with a legend."""
    parts = []
    x = 10.0
    for at, (name, share) in enumerate(rows):
        width = share * (_WIDTH - 20)
        colour = _COLOURS[at % len(_COLOURS)]
        parts.append(f'<rect x="{x:.1f}" y="8" width="{width:.1f}" height="24" fill="{colour}"/>')
        y = 50 + at * 18
        parts.append(f'<rect x="10" y="{y - 10}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="28" y="{y}">{escape(name)}: {100 * share:.1f} %</text>')
        x += width
    return _svg(title, parts, 50 + len(rows) * 18)


def _svg(title: str, parts: Sequence[str], height: float) -> str:
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {_WIDTH} {height:.0f}" width="{_WIDTH}" '
        f'role="img" aria-label="{escape(title)}" font-family="sans-serif" font-size="12" fill="{_INK}">'
        f"{''.join(parts)}</svg></figure>"
    )
