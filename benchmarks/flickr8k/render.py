"""Tables in Markdown, made from the result files and written into the docs between two marks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.flickr8k import results
from benchmarks.flickr8k.results import Result
from benchmarks.flickr8k.tables import PRIOR, Row, Table
from deixis.atomic import write_text
from deixis.errors import DeixisError
from deixis.metrics.bootstrap import Difference, paired_difference

ROOT = Path(__file__).resolve().parents[2]
SHORT = {
    "any-box R@1": "R@1",
    "any-box R@5": "R@5",
    "any-box R@10": "R@10",
    "any-box pointing": "pointing",
    "merged-box R@1": "R@1 (merged)",
    "merged-box R@5": "R@5 (merged)",
    "merged-box R@10": "R@10 (merged)",
    "merged-box pointing": "pointing (merged)",
    "F1_all_per_sent": "F1_all per sentence",
    "F1_loc_per_sent": "F1_loc per sentence",
    "attention_accuracy": "attention accuracy",
    "attention": "attention accuracy",
}
VARIANTS = {"bare": "bare", "prior": f"times objectness^{PRIOR:g}"}


def write(table: Table, root: Path = ROOT) -> None:
    """Put a table into its page, between ``<!-- table NAME -->`` and ``<!-- end NAME -->``."""
    page = root / table.page
    begin, end = f"<!-- table {table.name} -->", f"<!-- end {table.name} -->"
    text = page.read_text(encoding="utf-8")
    if begin not in text or end not in text:
        raise DeixisError(f"{page} has no place for the table: write '{begin}' and '{end}' where it should be")
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    write_text(page, f"{before}{begin}\n{markdown(table)}\n{end}{after}")


def markdown(table: Table, folder: Path | None = None) -> str:
    """Return the whole table: figures of each row, then differences beside the paper's."""
    folder = folder or results.folder_of(table.split, table.on)
    done = {row.name: found(row, folder) for row in table.rows}
    photos = {result.photos for many in done.values() for result in many}
    if len(photos) > 1:
        raise DeixisError(f"the results of table {table.name} are over different photos: measure them again")
    parts = [
        f"`python -m benchmarks.flickr8k --table {table.name}`, {f'{table.on} ' if table.on else ''}{table.split}, "
        "mean ± standard deviation over seeds, per cent."
    ]
    variants = VARIANTS if table.kind == "phrases" else {"bare": ""}
    for variant, name in variants.items():
        parts += ["", *([f"*{name}*", ""] if name else []), *_figures(table, done, variant)]
    parts += ["", *_differences(table, done, tuple(variants))]
    missing = [row.title for row in table.rows if not done[row.name]]
    if missing:
        parts += ["", f"Not run: {'; '.join(missing)}."]
    return "\n".join(parts)


def found(row: Row, folder: Path) -> list[Result]:
    """Return the results of a row that exist, by seed."""
    return [result for seed in row.seeds if (result := results.current(row, seed, folder)) is not None]


def _figures(table: Table, done: dict[str, list[Result]], variant: str) -> list[str]:
    lines = [_line(["", "seeds", "steps", *(SHORT.get(metric, metric) for metric in table.metrics)])]
    lines.append(_line(["---"] * (3 + len(table.metrics))))
    for row in table.rows:
        many = done[row.name]
        if not many:
            continue
        cells = [_spread([value for r in many if (value := r.value(variant, m)) is not None]) for m in table.metrics]
        steps = "/".join(dict.fromkeys(str(result.steps) for result in many))
        lines.append(_line([row.title, str(len(many)), steps, *cells]))
    return lines


def _differences(table: Table, done: dict[str, list[Result]], variants: Sequence[str]) -> list[str]:
    """Return each row's difference to the row it is compared with, with its interval by photo, beside the paper's."""
    rows = {row.name: row for row in table.rows}
    heads = [
        f"{SHORT.get(m, m)}{', ' + VARIANTS[v] if len(variants) > 1 else ''}" for v in variants for m in table.compared
    ]
    lines = [
        f"Differences over the same seeds and photos, [95 % interval by photo], beside the paper's ({table.paper}):",
        "",
        _line(["row", "against", *heads, "the paper's"]),
        _line(["---"] * (3 + len(heads))),
    ]
    for row in table.rows:
        if row.against is None or not done[row.name]:
            continue
        other = rows[row.against]
        cells = []
        for variant in variants:
            for metric in table.compared:
                gap = difference(done[row.name], done[other.name], variant, metric)
                cells.append(
                    "not run" if gap is None else _gap(gap, _base(done[row.name], done[other.name], variant, metric))
                )
        base = row.paper_base or other.paper
        published = [
            f"{SHORT.get(name, name)} {value - base[name]:+.2f} ({value / base[name] - 1:+.0%})"
            for name, value in row.paper.items()
            if name in base
        ]
        lines.append(_line([row.title, other.title, *cells, ", ".join(published) or "none"]))
    return lines


def difference(a: list[Result], b: list[Result], variant: str, metric: str) -> Difference | None:
    """Return the paired difference over the seeds both rows have, or None where one has none."""
    seeds = {result.seed for result in a} & {result.seed for result in b}
    first, second = (
        [sample for r in many if r.seed in seeds and (sample := r.sample(variant, metric)) is not None]
        for many in (a, b)
    )
    if not first or len(first) != len(second):
        return None
    return paired_difference(first, second)


def _base(a: list[Result], b: list[Result], variant: str, metric: str) -> float:
    """Return the mean of what is compared with, over the seeds both rows have."""
    seeds = {result.seed for result in a}
    return statistics.fmean(v for r in b if r.seed in seeds and (v := r.value(variant, metric)) is not None)


def _gap(gap: Difference, base: float) -> str:
    """Return a difference with its interval, and the gain relative to what it is compared with."""
    relative = f" ({gap.value / base:+.0%})" if base else ""
    text = f"{100 * gap.value:+.1f} [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]{relative}"
    return f"**{text}**" if gap.low > 0 or gap.high < 0 else text


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    mean = 100 * statistics.fmean(values)
    return f"{mean:.1f}" if len(values) == 1 else f"{mean:.1f} ± {100 * statistics.stdev(values):.1f}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
