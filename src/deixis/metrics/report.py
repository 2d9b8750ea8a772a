"""What was measured, on what and how: one report, shown as a table and written as JSON, Markdown and HTML.

Every section is one protocol, and names it together with the split, the number of items and where the regions came
from; numbers of different protocols never stand in one table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deixis.atomic import write_text
from deixis.errors import BadFileError
from deixis.metrics.bootstrap import MacroSample, Sample, draw_weights, intervals, value_of

REPORT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A smaller table beside the main one; numbers from 0 to 1 are shown in per cent, counts as they are."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """The numbers of one protocol."""

    protocol: str
    items: int
    what: str
    """What ``items`` counts: captions, phrases, segments."""
    scores: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    samples: Mapping[str, Sample] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()
    plots: tuple[str, ...] = ()
    scale: Mapping[str, float] = field(default_factory=dict)
    """What a number is multiplied with where it is shown; 100 unless given."""

    @classmethod
    def of_samples(
        cls,
        protocol: str,
        items: int,
        what: str,
        samples: Mapping[str, Sample],
        groups: tuple[str, ...],
        *,
        replicates: int,
        seed: int,
        scores: Mapping[str, float] | None = None,
        breakdowns: tuple[Breakdown, ...] = (),
        plots: tuple[str, ...] = (),
    ) -> Section:
        """Build a section whose numbers and intervals come from samples; ``scores`` adds numbers without interval."""
        found = intervals(samples, draw_weights(len(groups), replicates, seed)) if replicates else {}
        values = {name: value_of(sample) for name, sample in samples.items()} | dict(scores or {})
        return cls(protocol, items, what, values, found, samples, groups, breakdowns, plots)

    def shown(self, name: str) -> str:
        """Return a number as people read it, such as ``4.98``."""
        return f"{self.scores[name] * self.scale.get(name, 100):.2f}"

    def shown_interval(self, name: str) -> str:
        """Return an interval as ``4.51 – 5.43``, or nothing."""
        if name not in self.intervals:
            return ""
        factor = self.scale.get(name, 100)
        low, high = self.intervals[name]
        return f"{low * factor:.2f} – {high * factor:.2f}"


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Everything one call of ``deixis score`` found."""

    submission: str
    reference: str
    split: str
    region_source: str
    sections: tuple[Section, ...]
    lemmas: str = ""
    model: str = ""
    notes: tuple[str, ...] = ()
    level: float = 0.95

    def header(self, section: Section) -> dict[str, str]:
        """Return what stands above the numbers of a section."""
        head = {
            "protocol": section.protocol,
            "split": self.split,
            section.what: f"{section.items:,}",
            "regions": self.region_source,
            "reference": self.reference,
            "submission": self.submission,
        }
        if self.model:
            head["model"] = self.model
        if self.lemmas:
            head["lemmas"] = self.lemmas
        return head

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, which ``deixis compare`` reads. Numbers are from 0 to 1 as the originals print them."""
        several = len(self.sections) > 1
        return {
            "deixis": REPORT_VERSION,
            "kind": "scores",
            "submission": self.submission,
            "reference": self.reference,
            "split": self.split,
            "region_source": self.region_source,
            "lemmas": self.lemmas,
            "model": self.model,
            "notes": list(self.notes),
            "scores": {
                f"{section.protocol}/{name}" if several else name: value
                for section in self.sections
                for name, value in section.scores.items()
            },
            "sections": [
                {
                    "protocol": section.protocol,
                    "items": section.items,
                    "what": section.what,
                    "scores": dict(section.scores),
                    "intervals": {name: list(pair) for name, pair in section.intervals.items()},
                    "interval_level": self.level,
                    "scale": dict(section.scale),
                    "breakdowns": [
                        {
                            "title": table.title,
                            "columns": list(table.columns),
                            "rows": [list(row) for row in table.rows],
                        }
                        for table in section.breakdowns
                    ],
                    "groups": list(section.groups),
                    "samples": _samples_json(section.samples),
                }
                for section in self.sections
            ],
        }

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        lines = ["# Scores", ""]
        for section in self.sections:
            lines += [f"## {section.protocol}", ""]
            lines += [f"- {key}: {value}" for key, value in self.header(section).items()]
            with_interval = bool(section.intervals)
            columns = ["metric", "value", *(["95 % interval"] if with_interval else [])]
            rows = [
                [name, section.shown(name), *([section.shown_interval(name)] if with_interval else [])]
                for name in section.scores
            ]
            lines += ["", *markdown_table(columns, rows), ""]
            for table in section.breakdowns:
                rows = [[cell(value) for value in row] for row in table.rows]
                lines += [f"### {table.title}", "", *markdown_table(table.columns, rows), ""]
        if self.notes:
            lines += ["## Notes", "", *(f"- {note}" for note in self.notes), ""]
        return "\n".join(lines)

    def write(self, folder: Path) -> list[Path]:
        """Write ``scores.json``, ``scores.md`` and ``scores.html`` into a folder, each under a temporary name first."""
        from deixis.metrics.html import report_page

        texts = {
            "scores.json": json.dumps(self.to_json()) + "\n",
            "scores.md": self.to_markdown(),
            "scores.html": report_page(self),
        }
        return write_texts(folder, texts)


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files into a folder so that each is there whole or not at all."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_text(folder / name, text)
    except OSError as error:
        raise BadFileError(f"{folder} cannot be written to: {error}") from error
    return [folder / name for name in texts]


def cell(value: str | int | float) -> str:
    """Return a table cell: text and counts as they are, shares in per cent."""
    return f"{100 * value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table, numbers to the right."""
    return [
        "| " + " | ".join(columns) + " |",
        "|" + "|".join(["---", *["---:"] * (len(columns) - 1)]) + "|",
        *("| " + " | ".join(value.replace("|", "\\|") for value in row) + " |" for row in rows),
    ]


def _samples_json(samples: Mapping[str, Sample]) -> dict[str, Any]:
    """Return the samples; precision, recall and F1 share their counts, which are written once."""
    written: dict[int, str] = {}
    found: dict[str, Any] = {}
    for name, sample in samples.items():
        if isinstance(sample, MacroSample):
            key = id(sample.precision_count)
            if key in written:
                found[name] = {"kind": "macro", "part": sample.part, "like": written[key]}
                continue
            written[key] = name
        found[name] = sample.to_json()
    return found
