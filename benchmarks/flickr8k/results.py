"""Result files: one small JSON a run, with what each photo contributes, so that differences can be tested by photo."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.flickr8k.rows import Row
from deixis.atomic import write_text
from deixis.errors import BadFileError
from deixis.metrics.bootstrap import MeanSample, Sample, sample_from_json, value_of

FOLDER = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Result:
    """What one run reaches. ``samples`` are by variant (``bare``, ``prior``) and then by metric: hits of each photo."""

    row: str
    seed: int
    recipe: str
    overrides: tuple[str, ...]
    split: str
    photos: str
    """Fingerprint of the photos' ids, in order: only results over the same photos are compared."""
    regions: str
    steps: int
    seconds: float
    """Processor time of training."""
    counts: Sequence[int]
    """Phrases of each photo; captions' metrics carry counts of their own."""
    samples: Mapping[str, Mapping[str, Any]]
    by_type: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def sample(self, variant: str, metric: str) -> Sample | None:
        """Return what the photos contribute to a metric, or None where it was not measured."""
        found = self.samples.get(variant, {}).get(metric)
        if isinstance(found, list):
            return MeanSample(np.array(found, dtype=np.float64), np.array(self.counts, dtype=np.float64))
        return None if found is None else sample_from_json(found, f"{self.row}-s{self.seed}: {metric}")

    def value(self, variant: str, metric: str) -> float | None:
        """Return a metric, from 0 to 1."""
        sample = self.sample(variant, metric)
        return None if sample is None else value_of(sample)


def fingerprint(photos: Sequence[str]) -> str:
    """Return a short name of a list of photos."""
    return hashlib.sha256("\n".join(photos).encode()).hexdigest()[:12]


def folder_of(split: str, on: str | None = None) -> Path:
    """Return where the results over a split of a dataset lie: Flickr8k's val, which most are of, has no subfolder."""
    folder = FOLDER if on is None else FOLDER / Path(on).name
    return folder if split == "val" else folder / split


def current(row: Row, seed: int, folder: Path = FOLDER) -> Result | None:
    """Return the result of a row as it is now; one that an earlier form of the row gave does not count."""
    result = load(row.name, seed, folder)
    if result is None or (result.recipe, tuple(result.overrides)) == (row.recipe, row.overrides):
        return result
    known = {part.replace("{seed}", str(seed)) for part in result.overrides}
    return result if result.recipe == row.recipe and known == set(row.settings(seed)) else None


def place(row: str, seed: int, folder: Path = FOLDER) -> Path:
    """Return where a run's result lies."""
    return folder / f"{row}-s{seed}.json"


def save(result: Result, folder: Path = FOLDER) -> Path:
    """Write a result under a temporary name and rename it."""
    path = place(result.row, result.seed, folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(asdict(result), ensure_ascii=False, separators=(",", ":")) + "\n")
    return path


def load(row: str, seed: int, folder: Path = FOLDER) -> Result | None:
    """Read a result, or None where there is none yet."""
    path = place(row, seed, folder)
    if not path.exists():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Result(**{**data, "overrides": tuple(data["overrides"])})
    except (ValueError, TypeError, KeyError) as error:
        raise BadFileError(
            f"{path} is not a result of this benchmark ({error!r}): delete it, it is made again"
        ) from None
