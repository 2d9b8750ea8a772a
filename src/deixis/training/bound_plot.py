"""The bound on mutual information against grounding, over the course of training.

InfoGround (Gupta et al., ECCV 2020), figure 4 and section 3.4: both rise together, until the bound goes on rising and
grounding does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from deixis.errors import BadFileError
from deixis.training.run import Run

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 420, 60, 20, 30, 50
COLOURS = ("#3b6ea8", "#b5533c", "#3f8f5b", "#d98e32", "#6b4fa0")

Points = Sequence[tuple[float, float]]


def points_of_run(path: Path, metric: str = "pointing") -> list[tuple[float, float]]:
    """Return (bound, metric) at every validation of a run, in order."""
    found = []
    for entry in Run(path).entries():
        values = entry.get("validation")
        if isinstance(values, Mapping) and "bound" in values:
            if metric not in values:
                raise BadFileError(f"{path} has no {metric!r} among its validations: {', '.join(values)}")
            found.append((float(values["bound"]), float(values[metric])))
    if not found:
        raise BadFileError(f"{path} has logged no bound: it is no run of InfoGround that was validated on phrases")
    return found


def moving_average(points: Points, window: int = 3) -> list[tuple[float, float]]:
    """Return the mean of each point with its neighbours, the paper's dashed line."""
    reach = window // 2
    means = []
    for at in range(len(points)):
        near = points[max(0, at - reach) : at + reach + 1]
        means.append((sum(x for x, _ in near) / len(near), sum(y for _, y in near) / len(near)))
    return means


def bound_plot(runs: Mapping[str, Points], metric: str = "pointing") -> str:
    """Return the figure as SVG: a colour for each run, a dot for each validation, its moving average dashed."""
    xs = [x for points in runs.values() for x, _ in points]
    ys = [y for points in runs.values() for _, y in points]
    x_low, x_high, y_low, y_high = min(xs), max(xs), min(ys), max(ys)

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x = LEFT + (point[0] - x_low) / ((x_high - x_low) or 1.0) * (WIDTH - LEFT - RIGHT)
        y = HEIGHT - BOTTOM - (point[1] - y_low) / ((y_high - y_low) or 1.0) * (HEIGHT - TOP - BOTTOM)
        return x, y

    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x_value, y_value = x_low + share * (x_high - x_low), y_low + share * (y_high - y_low)
        x, y = place((x_value, y_value))
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * y_value:.1f}</text>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x_value:.2f}</text>')
    for at, (name, points) in enumerate(runs.items()):
        colour = COLOURS[at % len(COLOURS)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, moving_average(points)))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-dasharray="5 4"/>')
        for point in points:
            x, y = place(point)
            tip = f"{escape(name)}: bound {point[0]:.3f}, {escape(metric)} {100 * point[1]:.1f}"
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"><title>{tip}</title></circle>')
        parts.append(f'<text x="{LEFT + 10}" y="{TOP + 4 + 16 * at}" fill="{colour}">{escape(name)}</text>')
    parts.append(
        f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 10}" text-anchor="middle">InfoNCE lower bound on '
        f"validation, nats per word (up: {escape(metric)}, per cent)</text>"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
        f'aria-label="Bound against {escape(metric)}" font-family="sans-serif" font-size="12" fill="#222">'
        f"{''.join(parts)}</svg>\n"
    )
