"""How our plots look: one palette, ink that follows the reader's light or dark scheme, the same bytes each time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deixis.atomic import write_text

# Okabe and Ito's colours, told apart by colour-blind people; those that stand out on white and, blue aside, on black
BLUE, VERMILION, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c959f"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, GREY)
PAPER, INK, RULE = "#ffffff", "#1f2328", "#d8dee4"
DARK = {PAPER: "#0d1117", INK: "#e6edf3", RULE: "#30363d", BLUE: "#56b4e9"}
"""What stands in for each where the reader prefers dark. Paper and ink change together, so they never meet wrongly."""

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "deixis",  # ids are otherwise drawn anew each time
    "svg.fonttype": "none",  # words stay words: they can be searched, and read aloud
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 9,
    "axes.edgecolor": RULE,
    "axes.facecolor": PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "legend.frameon": False,
}


@contextmanager
def picture(path: Path, title: str, width: float, height: float) -> Iterator[Figure]:
    """Give a figure to draw on, in inches, and write it as SVG; nothing is written where drawing fails."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, _for_both_schemes(text.getvalue()))


def bare(axes: Axes, grid: str = "x") -> None:
    """Take away what dots and bars beside names do not need."""
    axes.grid(visible=False)
    axes.grid(visible=True, axis="x" if grid == "x" else "y")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _for_both_schemes(svg: str) -> str:
    rules = " ".join(
        f'[style*="{part}: {light}"] {{ {part}: {dark} !important }}'
        for light, dark in DARK.items()
        for part in ("fill", "stroke")
    )
    style = f"<style>@media (prefers-color-scheme: dark) {{ {rules} }}</style>"
    head, body = svg.split("<defs>", 1)
    return f"{head}{style}\n <defs>{body}"
