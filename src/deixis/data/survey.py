"""Count what a dataset holds, split by split, and gather what is wrong with it."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from deixis.data.dataset import BadExampleError, Dataset, Problems
from deixis.data.open import open_dataset
from deixis.types.example import ClipSegment, Example

_CHUNK = 250
_WORTH_PROCESSES = 1_000


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is: of an example, a split, or a dataset."""

    images: int = 0
    """Photos or segments of clips."""
    files: int = 0
    """Those whose photo or clip is here."""
    captions: int = 0
    phrases: int = 0
    boxed_phrases: int = 0
    boxes: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.images + other.images,
            self.files + other.files,
            self.captions + other.captions,
            self.phrases + other.phrases,
            self.boxed_phrases + other.boxed_phrases,
            self.boxes + other.boxes,
        )


@dataclass(frozen=True, slots=True)
class Survey:
    """What :func:`survey` found."""

    path: Path
    format: str
    splits: dict[str, Counts]
    total: Counts
    """Over all splits, each example once."""
    problems: Problems
    drawn: dict[str, Counts] = field(default_factory=dict)
    """Of a dataset without splits: those that are drawn by name (``drawn.py``)."""

    def to_json(self) -> dict[str, Any]:
        """Return the form that ``deixis data info --json`` prints."""
        return {
            "path": str(self.path),
            "format": self.format,
            "splits": {name: asdict(counts) for name, counts in self.splits.items()},
            "drawn_splits": {name: asdict(counts) for name, counts in self.drawn.items()},
            "total": asdict(self.total),
            "problems": [
                {"kind": kind, "count": self.problems.count(kind), "places": list(self.problems.places(kind))}
                for kind in self.problems.kinds
            ],
        }


def survey(dataset: Dataset, *, processes: int | None = None, progress: Callable[[int], None] | None = None) -> Survey:
    """Read every example once and count.

    Args:
        dataset: Any open dataset; problems it has noted before are part of the result.
        processes: How many processes read; by default all cores where each example has files of its own.
        progress: Called with the number of examples done since the last call.
    """
    ids = dataset.ids()
    if processes is None:
        many = dataset.many_files and len(ids) >= _WORTH_PROCESSES
        processes = min(os.cpu_count() or 1, 8) if many else 1
    known: dict[str, Counts] = {}
    for counts, problems in _in_processes(dataset, ids, processes) if processes > 1 else _here(dataset, ids):
        known |= counts
        dataset.problems.add(problems)
        if progress is not None:
            progress(_CHUNK)

    def of(splits: Sequence[str]) -> dict[str, Counts]:
        return {split: sum((known[id] for id in dataset.ids(split) if id in known), Counts()) for split in splits}

    total = sum(known.values(), Counts())
    return Survey(dataset.path, dataset.format, of(dataset.splits), total, dataset.problems, of(dataset.drawn_splits))


def count_example(example: Example) -> Counts:
    """Count one example."""
    phrases = [phrase for caption in example.captions for phrase in caption.phrases]
    return Counts(
        images=1,
        files=int(_is_here(example)),
        captions=len(example.captions),
        phrases=len(phrases),
        boxed_phrases=sum(bool(phrase.boxes) for phrase in phrases),
        boxes=len(example.objects),
    )


def _is_here(example: Example) -> bool:
    if isinstance(example.source, ClipSegment):
        return example.source.path is not None
    return example.source.read is not None or example.source.path.is_file()


def _count(dataset: Dataset, ids: Sequence[str]) -> dict[str, Counts]:
    found = {}
    for id in ids:
        try:
            found[id] = count_example(dataset[id])
        except BadExampleError as error:
            dataset.problems.note(error.kind, str(error))
    return found


def _here(dataset: Dataset, ids: Sequence[str]) -> Iterator[tuple[dict[str, Counts], Problems]]:
    for at in range(0, len(ids), _CHUNK):
        yield _count(dataset, ids[at : at + _CHUNK]), Problems()


_opened: Dataset | None = None


def _open_in_worker(path: Path, format: str) -> None:
    global _opened
    _opened = open_dataset(path, format)


def _count_in_worker(ids: Sequence[str]) -> tuple[dict[str, Counts], Problems]:
    if _opened is None:
        raise RuntimeError("the worker has no dataset open")
    _opened.problems = Problems()
    return _count(_opened, ids), _opened.problems


def _in_processes(dataset: Dataset, ids: Sequence[str], processes: int) -> Iterator[tuple[dict[str, Counts], Problems]]:
    # Forking spares each worker the second that importing torch takes; elsewhere than on Linux it is not safe.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    given = (dataset.path, dataset.format)
    with ProcessPoolExecutor(processes, context, initializer=_open_in_worker, initargs=given) as pool:
        waiting = [pool.submit(_count_in_worker, ids[at : at + _CHUNK]) for at in range(0, len(ids), _CHUNK)]
        for done in as_completed(waiting):
            yield done.result()
