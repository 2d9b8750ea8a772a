"""The one-page report of a run: curves as inline SVG, and sample captions with boxes at each validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from deixis.atomic import write_text
from deixis.training.run import SAMPLES, Run

COLOURS = ("#0b6e99", "#c2410c", "#15803d", "#7c3aed", "#be185d", "#854d0e", "#0f766e", "#4338ca")

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c1917; }
h1, h2 { line-height: 1.2; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; }
.grid { display: flex; flex-wrap: wrap; gap: 1rem; } .plots svg { width: 29rem; max-width: 100%; }
figure { margin: 0; width: 15rem; } figcaption { font-size: .85rem; } mark { background: none; font-weight: 600; }
.old { color: #57534e; font-size: .85rem; }
@media (prefers-color-scheme: dark) { body { background: #1c1917; color: #f5f5f4; } .old { color: #a8a29e; } }
"""


def write_report(run: Run) -> None:
    """Write ``report.html`` from what the run has logged so far."""
    steps: list[dict[str, Any]] = []
    validations: list[dict[str, Any]] = []
    for entry in run.entries():
        (validations if "validation" in entry else steps).append(entry)
    recipe = run.recipe()
    title = escape(recipe.about.title)
    parts = [
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>",
        f"<meta name='viewport' content='width=device-width'><style>{STYLE}</style></head><body><h1>{title}</h1>",
        f"<p>{escape(' · '.join(filter(None, [recipe.about.paper, recipe.about.table, recipe.about.row])))}</p>",
        _facts(recipe.size, recipe.seed, steps, validations),
        "<h2>Curves</h2><div class='plots grid'>",
    ]
    skipped = {"step", "epoch", "stage", "wait"}
    names = list(dict.fromkeys(name for entry in steps for name in entry if name not in skipped))
    parts += [line_plot(name, _curve(steps, name)) for name in names]
    measured = list(dict.fromkeys(name for entry in validations for name in entry["validation"]))
    for name in measured:
        points = [(entry["step"], entry["validation"].get(name)) for entry in validations]
        parts.append(line_plot(f"validation {name}", [(x, y) for x, y in points if y is not None], dots=True))
    parts.append("</div>")
    parts += _samples(list(run.entries(SAMPLES)))
    parts.append("</body></html>\n")
    write_text(run.path / "report.html", "".join(parts))


def _curve(entries: Sequence[Mapping[str, Any]], name: str, most: int = 400) -> list[tuple[float, float]]:
    """Return (step, value), averaged so that a long run gives a light page."""
    points = [(float(e["step"]), float(e[name])) for e in entries if isinstance(e.get(name), int | float)]
    size = max(1, -(-len(points) // most))
    groups = [points[at : at + size] for at in range(0, len(points), size)]
    return [(sum(x for x, _ in g) / len(g), sum(y for _, y in g) / len(g)) for g in groups]


def _facts(size: str, seed: int, steps: Sequence[Mapping[str, Any]], validations: Sequence[Mapping[str, Any]]) -> str:
    rows = [("size", size), ("seed", str(seed))]
    if steps:
        rate = sorted(entry["captions_per_second"] for entry in steps)[len(steps) // 2]
        rows += [("steps", str(steps[-1]["step"])), ("captions per second (median)", f"{rate:.0f}")]
    if validations:
        last = ", ".join(f"{name} {value:.3f}" for name, value in validations[-1]["validation"].items())
        rows.append(("last validation", last))
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<table>{cells}</table>"


def line_plot(title: str, points: Sequence[tuple[float, float]], *, dots: bool = False) -> str:
    """Return one curve as an SVG figure with its smallest, largest and last value written beside it."""
    if not points:
        return ""
    width, height, left, top = 460, 190, 56, 26
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high = min(ys), max(ys)
    across, up = (max(xs) - min(xs)) or 1.0, (high - low) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        return left + (x - min(xs)) / across * (width - left - 12), height - 22 - (y - low) / up * (height - top - 30)

    spots = [place(x, y) for x, y in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    marks = "".join(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='{COLOURS[0]}'/>" for x, y in spots) if dots else ""
    label = "font-size='11' fill='currentColor'"
    return (
        f"<svg viewBox='0 0 {width} {height}' role='img' aria-label='{escape(title, quote=True)}'>"
        f"<text x='{left}' y='15' font-size='13' fill='currentColor'>{escape(title)}: last {ys[-1]:.4g}</text>"
        f"<text x='{left - 6}' y='{top + 12}' {label} text-anchor='end'>{high:.3g}</text>"
        f"<text x='{left - 6}' y='{height - 20}' {label} text-anchor='end'>{low:.3g}</text>"
        f"<text x='{left}' y='{height - 5}' {label}>step {min(xs):.0f}</text>"
        f"<text x='{width - 12}' y='{height - 5}' {label} text-anchor='end'>{max(xs):.0f}</text>"
        f"<polyline points='{line}' fill='none' stroke='{COLOURS[0]}' stroke-width='1.5'/>{marks}</svg>"
    )


def _samples(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the newest samples first; each photo is embedded once and used again."""
    thumbnails = {s["id"]: s["thumbnail"] for entry in entries for s in entry["samples"] if s.get("thumbnail")}
    numbers = {name: at for at, name in enumerate(dict.fromkeys(s["id"] for e in entries for s in e["samples"]))}
    parts = ["<h2>Samples</h2><svg width='0' height='0' aria-hidden='true'><defs>"]
    for name, data in thumbnails.items():
        parts.append(
            f"<image id='photo-{numbers[name]}' width='1' height='1' preserveAspectRatio='none' "
            f"href='data:image/jpeg;base64,{data}'/>"
        )
    parts.append("</defs></svg>")
    for entry in reversed(entries):
        parts.append(f"<h3>Epoch {entry['epoch']}, step {entry['step']}</h3><div class='grid'>")
        parts += [_sample(sample, numbers[sample["id"]]) for sample in entry["samples"]]
        parts.append("</div>")
    return parts


def _sample(sample: Mapping[str, Any], number: int) -> str:
    width, height = sample["size"]
    boxes: list[str] = []
    words: list[str] = []
    for word in sample["words"]:
        if word["box"] is None:
            words.append(escape(word["text"]))
            continue
        colour = COLOURS[len(boxes) % len(COLOURS)]
        x1, y1, x2, y2 = word["box"]
        boxes.append(
            f"<rect x='{x1}' y='{y1}' width='{x2 - x1:.1f}' height='{y2 - y1:.1f}' fill='none' stroke='{colour}' "
            f"stroke-width='{max(width, height) / 120:.1f}'><title>{escape(word['text'])}</title></rect>"
        )
        words.append(f"<mark style='color:{colour}'>{escape(word['text'])}</mark>")
    reference = escape(sample["references"][0]) if sample["references"] else ""
    return (
        f"<figure><svg viewBox='0 0 {width} {height}' width='100%'><use href='#photo-{number}' "
        f"transform='scale({width} {height})'/>{''.join(boxes)}</svg>"
        f"<figcaption>{' '.join(words)}<br><span class='old'>{reference}</span></figcaption></figure>"
    )
