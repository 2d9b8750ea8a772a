"""Counters and histograms in Prometheus' text format (version 0.0.4), without its library."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Counter:
    """A number for each set of labels that only grows."""

    name: str
    help: str
    values: dict[Labels, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, amount: float = 1, **labels: str) -> None:
        """Count."""
        self.values[tuple(labels.items())] += amount

    def lines(self) -> list[str]:
        """Return the text form."""
        head = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} counter"]
        return head + [f"{self.name}{_labels(labels)} {value:g}" for labels, value in sorted(self.values.items())]


@dataclass(slots=True)
class Gauge:
    """A number that is asked for when it is shown."""

    name: str
    help: str
    read: Callable[[], float]

    def lines(self) -> list[str]:
        """Return the text form."""
        head = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} gauge"]
        return [*head, f"{self.name} {self.read():g}"]


@dataclass(slots=True)
class Histogram:
    """How often a value fell under each bound, for each set of labels."""

    name: str
    help: str
    bounds: tuple[float, ...]
    counts: dict[Labels, list[int]] = field(default_factory=dict)
    sums: dict[Labels, float] = field(default_factory=lambda: defaultdict(float))

    def see(self, value: float, **labels: str) -> None:
        """Count a value."""
        key = tuple(labels.items())
        counts = self.counts.setdefault(key, [0] * (len(self.bounds) + 1))
        counts[bisect_left(self.bounds, value)] += 1
        self.sums[key] += value

    def lines(self) -> list[str]:
        """Return the text form: counts up to each bound, with everything below it."""
        lines = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} histogram"]
        for key, counts in sorted(self.counts.items()):
            total = 0
            for bound, count in zip((*self.bounds, None), counts, strict=True):
                total += count
                edge = "+Inf" if bound is None else f"{bound:g}"
                lines.append(f"{self.name}_bucket{_labels((*key, ('le', edge)))} {total}")
            lines += [f"{self.name}_sum{_labels(key)} {self.sums[key]:g}", f"{self.name}_count{_labels(key)} {total}"]
        return lines


class Metrics:
    """What the server counts."""

    def __init__(self, gauges: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        self._lock = threading.Lock()
        self.requests = Counter("deixis_requests_total", "Requests by route and status.")
        self.seconds = Histogram("deixis_request_seconds", "Time from the first byte to the answer.", SECONDS)
        self.batches = Histogram("deixis_batch_size", "Photos or clips answered in one pass.", SIZES)
        self.passes = Histogram("deixis_batch_seconds", "Time of one pass.", SECONDS)
        self._gauges = [Gauge(name, help, read) for name, (help, read) in gauges.items()]

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        with self._lock:
            self.requests.add(route=route, status=str(status))
            self.seconds.see(seconds, route=route)

    def batch(self, line: str, size: int, seconds: float) -> None:
        """Count a pass of a worker."""
        with self._lock:
            self.batches.see(size, line=line)
            self.passes.see(seconds, line=line)

    def text(self) -> str:
        """Return everything in the text format."""
        with self._lock:
            families: list[Counter | Gauge | Histogram] = [self.requests, self.seconds, self.batches, self.passes]
            families += self._gauges
            return "\n".join(line for family in families for line in family.lines()) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
