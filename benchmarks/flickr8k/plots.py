"""The plots of ``docs/reports/results.md`` and ``docs/reports/grounding.md``, drawn from the result files alone."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from benchmarks.bound_plot import Points, moving_average
from benchmarks.drawing import BLUE, GREEN, GREY, INK, PALETTE, PURPLE, RULE, VERMILION, bare, picture
from benchmarks.flickr8k import results
from benchmarks.flickr8k.facts import THRESHOLDS
from benchmarks.flickr8k.render import ROOT, VARIANTS
from benchmarks.flickr8k.results import Result
from benchmarks.flickr8k.tables import TABLES, Row
from benchmarks.flickr8k.work import recipe_of

IMAGES = ROOT / "docs" / "images"
BASE, SWEEP = "continued", "lambda-"
METHODS = {"infoground": "InfoGround", "reir": "ReIR"}
LAYERS = {
    "infoground-linear": "linear",
    "infoground-none": "1 hidden layer",
    "infoground-two-layers": "2 hidden layers",
}
ERRORS = {
    "correct": ("right", GREEN),
    "partial": ("box of a part", BLUE),
    "other": ("other wrong box", PURPLE),
    "hallucinated_class": ("word not in the reference", VERMILION),
    "missed_class": ("word of the reference not said", GREY),
}


def draw(folder: Path = results.FOLDER, images: Path = IMAGES) -> dict[str, bool]:
    """Draw every plot for which there are results; say of each file whether it was drawn."""
    return {name: figure(images / name, folder) for name, figure in FIGURES.items()}


def draw_frequency(path: Path, folder: Path = results.FOLDER) -> bool:
    """F1_loc of each captioner by how often the training captions name a class (Cyclical, figure 4)."""
    done = _rows("captioning", "by frequency", folder)
    if not done:
        return False
    bins: list[dict[str, Any]] = next(iter(done.values()))[0].facts["by frequency"]
    title = "F1_loc by how many phrases of the training captions name the class"
    with picture(path, title, 9.5, 1.2 + 0.22 * len(done)) as figure:
        panels = figure.subplots(1, len(bins), sharex=True, sharey=True, squeeze=False)[0]
        for at, (panel, bin_) in enumerate(zip(panels, bins, strict=True)):
            values = {name: [r.facts["by frequency"][at]["F1_loc"] for r in many] for name, many in done.items()}
            _dots(panel, {name: [100 * (value or 0) for value in many] for name, many in values.items()})
            above = f" to {bins[at - 1]['at least'] - 1:,}" if at else " and more"
            panel.set_title(f"{bin_['at least']:,}{above}\n({bin_['classes']} classes)")
        panels[0].set_yticks(range(len(done)), [_title("captioning", name) for name in done])
        panels[0].set_ylim(len(done) - 0.5, -0.5)
        widest = max(panels[0].get_xlim()[1], 1)
        panels[0].set_xlim(-0.06 * widest, 1.3 * widest)  # room for a dot at 0, and for the figures beside the dots
        figure.supxlabel(f"{title}, per cent", color=INK, fontsize=9)
    return True


def _dots(panel: Axes, values: Mapping[str, Sequence[float]]) -> None:
    """Draw a row of dots a captioner: the mean with its figure, a line from the worst to the best seed."""
    bare(panel)
    if BASE in values:
        panel.axvline(statistics.fmean(values[BASE]), color=GREY, linewidth=1, linestyle=":")
    for at, (name, many) in enumerate(values.items()):
        colour, mean = GREY if name == BASE else BLUE, statistics.fmean(many)
        panel.plot([min(many), max(many)], [at, at], color=colour, linewidth=1)
        panel.plot([mean], [at], "o", color=colour, markersize=5)
        panel.annotate(f"{mean:.1f}", (max(*many, mean), at), (5, 0), textcoords="offset points", va="center", size=8)


def draw_sweep(path: Path, folder: Path = results.FOLDER) -> bool:
    """F1_all and CIDEr against the weight of distillation (POS-SCAN, figure 3); 0 is continued cross entropy."""
    rows = [r for r in TABLES["headline"].rows if r.name in (BASE, "distilled-lite")]
    rows += [r for r in TABLES["captioning"].rows if r.name.startswith(SWEEP)]
    found = {distillation_weight(row): many for row in rows if (many := _found(row, folder))}
    points = dict(sorted(found.items()))
    if len(points) < 2:
        return False
    with picture(path, "Grounding and captions against the weight of distillation", 7, 2.8) as figure:
        for panel, metric in zip(figure.subplots(1, 2), ("F1_all", "CIDEr"), strict=True):
            bare(panel, grid="y")
            values = [[100 * v for r in many if (v := r.value("bare", metric)) is not None] for many in points.values()]
            means = [statistics.fmean(seeds) for seeds in values]
            panel.plot(range(len(points)), means, color=BLUE, linewidth=1.5)
            for at, seeds in enumerate(values):
                panel.plot([at] * len(seeds), seeds, "o", color=BLUE, markersize=5 if len(seeds) == 1 else 3)
                dip = means[at] < statistics.fmean(means[max(0, at - 1) : at + 2])  # the line comes from above
                place, aside = ((at, min(seeds)), (0, -12)) if dip else ((at, max(seeds)), (0, 6))
                panel.annotate(f"{means[at]:.1f}", place, aside, textcoords="offset points", ha="center", size=8)
            panel.margins(x=0.08, y=0.25)
            panel.set_xticks(range(len(points)), [f"{weight:g}" for weight in points])
            panel.set_xlabel("weight of distillation (not to scale)")
            panel.set_title(f"{metric}, per cent")
    return True


def distillation_weight(row: Row) -> float:
    """Return the weight of distillation in the stages that a row trains; 0 where it has none."""
    recipe = recipe_of(row, row.seeds[0])
    trained = [recipe.stages[at] for at in recipe.planned]
    return next((o.weight for stage in trained for o in stage.objectives if o.kind == "distillation"), 0.0)


def draw_overlap(path: Path, folder: Path = results.FOLDER) -> bool:
    """The share of phrases whose box is right at each IoU that may be asked for; a panel a grounder."""
    done = _rows("grounding", "IoU", folder)
    if not done:
        return False
    curves = {name: {v: _mean_curve(many, v) for v in (*VARIANTS, "best region")} for name, many in done.items()}
    wide = 4
    high = -(-len(done) // wide)
    shown = {"bare": VERMILION, "prior": BLUE}
    with picture(path, "Share of phrases by the IoU asked for", 9.5, 0.7 + 1.9 * high) as figure:
        panels = list(figure.subplots(high, wide, sharex=True, sharey=True, squeeze=False).flat)
        for panel, (name, own) in zip(panels, curves.items(), strict=False):
            for other in curves.values():
                panel.plot(THRESHOLDS, other["prior"], color=RULE, linewidth=0.8)
            panel.plot(THRESHOLDS, own["best region"], color=GREY, linewidth=1.2, linestyle=":", label="best region")
            for variant, colour in shown.items():
                panel.plot(THRESHOLDS, own[variant], color=colour, linewidth=1.6, label=VARIANTS[variant])
            _right_at_half(panel, [(own[variant], colour) for variant, colour in shown.items()])
            panel.set_title(fill(_title("grounding", name), 25))
            panel.set_xticks([0.1, 0.3, 0.5, 0.7, 0.9])
        for panel in panels[len(done) :]:
            panel.set_visible(False)
        handles = figure.axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper left", ncols=3, labelcolor="linecolor")
        figure.supxlabel("IoU of the first box is at least", color=INK, fontsize=9)
        figure.supylabel("phrases, per cent", color=INK, fontsize=9)
    return True


def _right_at_half(panel: Axes, curves: Sequence[tuple[Sequence[float], str]]) -> None:
    """Mark R@1, the higher curve's above it and the lower one's below."""
    at = THRESHOLDS.index(0.5)
    ordered = sorted(curves, key=lambda entry: entry[0][at])
    for (curve, colour), (aside, align) in zip(ordered, (((-4, -4), "right"), ((4, 3), "left")), strict=True):
        panel.plot([0.5], [curve[at]], "o", color=colour, markersize=4)
        vertical = "top" if align == "right" else "bottom"
        text = f"{curve[at]:.0f}"
        panel.annotate(
            text, (0.5, curve[at]), aside, textcoords="offset points", ha=align, va=vertical, size=8, color=colour
        )


def _mean_curve(many: Sequence[Result], variant: str) -> list[float]:
    return [100 * statistics.fmean(values) for values in zip(*(r.facts["IoU"][variant] for r in many), strict=True)]


def draw_errors(path: Path, folder: Path = results.FOLDER) -> bool:
    """Where the object words of each captioner go (Distributed, table 4)."""
    done = _rows("captioning", "errors", folder)
    if not done:
        return False
    with picture(path, "Object words of captions by what is wrong with them", 9.5, 0.9 + 0.26 * len(done)) as figure:
        panel = figure.subplots()
        bare(panel)
        left = np.zeros(len(done))
        for kind, (name, colour) in ERRORS.items():
            shares = np.array([100 * statistics.fmean(r.facts["errors"][kind] for r in m) for m in done.values()])
            bars = panel.barh(range(len(done)), shares, left=left, color=colour, height=0.78, label=name)
            panel.bar_label(
                bars, [f"{s:.0f}" for s in shares], label_type="center", size=8, color=_on(colour), padding=0
            )
            left += shares
        panel.set_yticks(range(len(done)), [_title("captioning", name) for name in done])
        panel.set_ylim(len(done) - 0.5, -0.5)
        panel.set_xlim(0, 100)
        figure.legend(loc="outside upper right", ncols=len(ERRORS), handlelength=1, handleheight=1)
        panel.set_xlabel("object words, said or in a reference, per cent")
    return True


def _on(colour: str) -> str:
    """Return what is read best on a colour of the palette, in either scheme."""
    return "#ffffff" if colour == BLUE else "#000000"


def draw_bound_of_results(path: Path, folder: Path = results.FOLDER) -> bool:
    """InfoGround's figure 4 from the validations that its rows' results hold."""
    runs: dict[str, dict[str, Points]] = {"R@1": {}, "pointing": {}}
    for row in (row for row in TABLES["infoground"].rows if row.name in LAYERS):
        for result in _found(row, folder)[:1]:  # seeds would lie on each other; the dots of one already scatter
            logged = [entry["validation"] for entry in result.facts.get("validations", ())]
            for metric, lines in runs.items():
                points = [(entry["bound"], entry[metric]) for entry in logged if "bound" in entry]
                if points:
                    lines[LAYERS[row.name]] = points
    if not runs["R@1"]:
        return False
    draw_bound(path, runs)
    return True


def draw_bound(path: Path, runs: Mapping[str, Mapping[str, Points]]) -> None:
    """Draw the bound against metrics, a panel each: a dot for each validation of a run, its moving average dashed.

    InfoGround (Gupta et al., ECCV 2020), figure 4.
    """
    with picture(path, "Bound on mutual information against grounding", 1.0 + 3.4 * len(runs), 3.2) as figure:
        for panel, (metric, lines) in zip(figure.subplots(1, len(runs), squeeze=False)[0], runs.items(), strict=True):
            for at, (name, points) in enumerate(lines.items()):
                colour = PALETTE[at % len(PALETTE)]
                scaled = [(bound, 100 * value) for bound, value in points]
                panel.plot(*zip(*scaled, strict=True), "o", color=colour, markersize=4, label=name)
                panel.plot(*zip(*moving_average(scaled), strict=True), "--", color=colour, linewidth=1)
            panel.set_title(f"{metric}, per cent")
            panel.set_xlabel("bound on validation, nats per word")
        # names beside the dots would lie on each other: runs begin and end close together
        handles = figure.axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside upper left", ncols=3, labelcolor="linecolor")


def _rows(table: str, fact: str, folder: Path) -> dict[str, list[Result]]:
    """Return the results of a table's rows that hold a fact, all seeds; points of a sweep have a plot of their own."""
    found = {}
    for row in TABLES[table].rows:
        many = [result for result in _found(row, folder) if fact in result.facts]
        if many and not row.name.startswith(SWEEP):
            found[row.name] = many
    return found


def _found(row: Row, folder: Path) -> list[Result]:
    """Return what there is of a row, with the seeds it has in any table."""
    rows = [other for table in TABLES.values() for other in table.rows if other.name == row.name]
    seeds = sorted({seed for other in rows for seed in other.seeds})
    return [result for seed in seeds if (result := results.current(row, seed, folder)) is not None]


def _title(table: str, name: str) -> str:
    """Return a row's title; out of its own table it also has to say of which method it is a row."""
    title = next(row.title for row in TABLES[table].rows if row.name == name).replace("`", "")
    method = METHODS.get(name.split("-")[0], "")
    return title if method in title else f"{method}, {title}"


FIGURES: dict[str, Callable[[Path, Path], bool]] = {
    "results-frequency.svg": draw_frequency,
    "results-lambda.svg": draw_sweep,
    "results-iou.svg": draw_overlap,
    "results-errors.svg": draw_errors,
    "results-bound.svg": draw_bound_of_results,
}
