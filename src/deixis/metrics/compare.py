"""Scored runs side by side: mean and deviation over seeds, and whether a difference is more than luck.

Significance is a paired bootstrap: the same photos are drawn for both runs, so what is hard for both cancels out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deixis.errors import BadFileError, DeixisError
from deixis.metrics.bootstrap import REPLICATES, Difference, Sample, paired_difference, sample_from_json
from deixis.metrics.files.json_lines import read_json_file
from deixis.metrics.grounding.f1 import relative_gain
from deixis.metrics.report import REPORT_VERSION


@dataclass(frozen=True, slots=True, eq=False)
class RunSection:
    """One protocol of one scored run."""

    scores: Mapping[str, float]
    samples: Mapping[str, Sample]
    groups: tuple[str, ...]
    scale: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What ``deixis score`` wrote for one run."""

    path: Path
    split: str
    reference: str
    region_source: str
    sections: Mapping[str, RunSection]


@dataclass(frozen=True, slots=True)
class Entry:
    """A metric of one method: its mean and deviation over seeds, and how it stands to the first method."""

    values: tuple[float, ...]
    difference: Difference | None = None
    gain: float | None = None
    """Share of the gap between the unsupervised and the supervised method that it closes."""

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.values))

    @property
    def deviation(self) -> float | None:
        """Sample deviation over seeds, None for one run alone."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One protocol's table: for each metric an entry per method, in the order they were given."""

    protocol: str
    split: str
    items: int
    region_sources: Mapping[str, str]
    metrics: Mapping[str, Mapping[str, Entry]]
    scale: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return everything the table shows, from 0 to 1."""
        return {
            "protocol": self.protocol,
            "split": self.split,
            "groups": self.items,
            "region_sources": dict(self.region_sources),
            "metrics": {
                metric: {name: _entry_json(entry) for name, entry in entries.items()}
                for metric, entries in self.metrics.items()
            },
        }


def read_run(path: Path) -> Run:
    """Read a ``scores.json``, or the one in a folder."""
    if path.is_dir():
        path = path / "scores.json"
    file = read_json_file(path)
    data = file.data
    if not isinstance(data, dict) or data.get("kind") != "scores" or data.get("deixis") != REPORT_VERSION:
        raise file.error([], "is not the JSON that `deixis score` writes (-o FOLDER, or --json)")
    try:
        sections = {}
        for section in data["sections"]:
            protocol = section["protocol"]
            raw = section["samples"]
            samples = {
                name: sample_from_json(
                    raw[sample["like"]] | {"part": sample["part"]} if "like" in sample else sample,
                    f"{path}: sample {name} of {protocol}",
                )
                for name, sample in raw.items()
            }
            scores = {str(name): float(value) for name, value in section["scores"].items()}
            sections[protocol] = RunSection(scores, samples, tuple(section["groups"]), section.get("scale", {}))
        return Run(path, data["split"], data["reference"], data["region_source"], sections)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadFileError(f"{path} is not the JSON that `deixis score` writes: {error!r}") from error


def compare_runs(
    methods: Mapping[str, Sequence[Run]],
    *,
    unsupervised: str | None = None,
    supervised: str | None = None,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> list[Comparison]:
    """Compare methods, each with one run or one per seed, with the first of them; one table per shared protocol."""
    runs = [run for several in methods.values() for run in several]
    first = runs[0]
    for run in runs:
        if run.split != first.split:
            raise DeixisError(
                f"{first.path} was scored on split {first.split!r}, {run.path} on {run.split!r}: numbers of different "
                "splits are not compared"
            )
    protocols = [name for name in first.sections if all(name in run.sections for run in runs)]
    if not protocols:
        other = next(run for run in runs if not set(run.sections) & set(first.sections))
        raise DeixisError(
            f"{first.path} was scored under {', '.join(first.sections)}, {other.path} under "
            f"{', '.join(other.sections)}: protocols never share a table"
        )
    for name in filter(None, (unsupervised, supervised)):
        if name not in methods:
            raise DeixisError(f"there is no run called {name!r}; there are {', '.join(methods)}")
    return [_compare_protocol(protocol, methods, unsupervised, supervised, replicates, seed) for protocol in protocols]


def _compare_protocol(
    protocol: str,
    methods: Mapping[str, Sequence[Run]],
    unsupervised: str | None,
    supervised: str | None,
    replicates: int,
    seed: int,
) -> Comparison:
    sections = {name: [run.sections[protocol] for run in runs] for name, runs in methods.items()}
    flat = [section for several in sections.values() for section in several]
    base = flat[0]
    for name, several in sections.items():
        for section in several:
            if sorted(section.groups) != sorted(base.groups):
                odd = set(section.groups) ^ set(base.groups)
                raise DeixisError(
                    f"run {name!r} was scored on other items under {protocol}: {len(odd)} differ"
                    + (f" (first: {sorted(odd)[0]!r})" if odd else "")
                )
    baseline = next(iter(sections))
    metrics: dict[str, dict[str, Entry]] = {}
    for metric in base.scores:
        if not all(metric in section.scores for section in flat):
            continue
        values = {name: tuple(section.scores[metric] for section in s) for name, s in sections.items()}
        paired = all(metric in section.samples and section.groups == base.groups for section in flat)
        entries = {}
        for name, several in sections.items():
            difference = None
            if paired and name != baseline:
                mine, theirs = ([section.samples[metric] for section in s] for s in (several, sections[baseline]))
                difference = paired_difference(mine, theirs, replicates=replicates, seed=seed)
            gain = None
            if unsupervised is not None and supervised is not None:
                ends = [float(np.mean(values[end])) for end in (unsupervised, supervised)]
                if ends[0] != ends[1]:
                    gain = relative_gain(float(np.mean(values[name])), *ends)
            entries[name] = Entry(values[name], difference, gain)
        metrics[metric] = entries
    some = next(iter(methods.values()))[0]
    sources = {name: ", ".join(dict.fromkeys(run.region_source for run in runs)) for name, runs in methods.items()}
    return Comparison(protocol, some.split, len(base.groups), sources, metrics, base.scale)


def _entry_json(entry: Entry) -> dict[str, Any]:
    data: dict[str, Any] = {"mean": entry.mean, "values": list(entry.values)}
    if entry.deviation is not None:
        data["deviation"] = entry.deviation
    if entry.difference is not None:
        change = entry.difference
        data["difference"] = {"value": change.value, "low": change.low, "high": change.high, "p": change.p}
    if entry.gain is not None:
        data["gain"] = entry.gain
    return data
