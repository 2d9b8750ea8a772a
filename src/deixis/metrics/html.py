"""A report as one HTML page without scripts or links: tables, intervals and small plots."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from deixis.metrics.report import Report, Section, cell

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:1rem 0}th,td{padding:.2rem .8rem;border-bottom:1px solid #ddd;text-align:right}
th:first-child,td:first-child{text-align:left}dl{display:grid;grid-template-columns:max-content auto;gap:.1rem 1rem}
dt{color:#666}dd{margin:0;overflow-wrap:anywhere}figure{margin:1rem 0}figcaption{font-weight:600}
.plots{display:flex;flex-wrap:wrap;gap:1rem}summary{cursor:pointer;font-weight:600}svg{max-width:100%}
"""


def report_page(report: Report) -> str:
    """Return the page. Everything from files is escaped."""
    body = "".join(_section(report, section) for section in report.sections)
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    if notes:
        body += f"<h2>Notes</h2><ul>{notes}</ul>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Scores of {escape(report.submission)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>Scores</h1>{body}</body></html>\n"
    )


def _section(report: Report, section: Section) -> str:
    head = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in report.header(section).items())
    rows = [[name, section.shown(name), section.shown_interval(name)] for name in section.scores]
    columns = ["metric", "value", f"{100 * report.level:.0f} % interval"]
    parts = [f"<h2>{escape(section.protocol)}</h2><dl>{head}</dl>", _table(columns, rows)]
    if section.plots:
        parts.append(f'<div class="plots">{"".join(section.plots)}</div>')
    for table in section.breakdowns:
        shown = _table(table.columns, [[cell(value) for value in row] for row in table.rows])
        parts.append(f"<details><summary>{escape(table.title)}</summary>{shown}</details>")
    return "".join(parts)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
