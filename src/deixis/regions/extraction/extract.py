"""Extraction of many images into a store, on an engine of choice: this process, several processes, or Ray."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from deixis.engines import ENGINES, Engine, run_tasks
from deixis.errors import BadFileError, DeixisError
from deixis.images import IMAGE_SUFFIXES
from deixis.regions.extraction.tasks import Settings, Source, Task, Worker
from deixis.regions.registry import build_extractor, public_name
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import Part, StoreWriter
from deixis.types import ImageFile


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an extraction is, counted in images."""

    done: int
    total: int
    resumed: int
    """How many were there before this run."""
    seconds: float

    @property
    def remaining(self) -> float | None:
        """Estimate of the seconds still needed; None before the first images of this run."""
        new = self.done - self.resumed
        return self.seconds / new * (self.total - self.done) if new else None


def extract(
    ids: Sequence[str],
    find: Callable[[str], Source],
    path: str | Path,
    settings: Settings,
    *,
    engine: Engine = "local",
    processes: int = 2,
    device: str = "cpu",
    progress: Callable[[Progress], None] | None = None,
) -> RegionStore:
    """Extract the regions of images into a store; called again after a kill it goes on where it stopped.

    Args:
        ids: What to call the images; the store holds them in sorted order.
        find: Gives the file or clip segment of an id. It may raise BadFileError: the image is then counted as failed.
        path: Folder of the store, new or of the same extraction.
        settings: What decides the contents.
        engine: ``local`` or ``ray``; the bytes of the store do not depend on it.
        processes: How many workers; 0 works in this process.
        device: Where networks run.
        progress: Called whenever some images are finished.
    """
    if engine not in ENGINES:
        raise DeixisError(f"unknown engine {engine!r}; there are local and ray")
    if not ids:
        raise DeixisError("there are no images to extract regions from")
    fingerprint = build_extractor(settings.extractor, device=device).fingerprint
    recorded = asdict(settings) | {"extractor": public_name(settings.extractor)}
    writer = StoreWriter(path, sorted(ids), fingerprint, recorded)
    total = len(ids)
    resumed = total - sum(len(writer.part_ids(number)) for number in writer.pending)
    done, start = resumed, time.monotonic()

    def tasks() -> Iterator[Task]:
        for number in list(writer.pending):
            yield Task(number, tuple((name, _portable(name, find)) for name in writer.part_ids(number)))

    try:
        if writer.pending:
            build = partial(Worker, settings, fingerprint, device)
            parts: Iterator[Part] = run_tasks(
                tasks(), build, engine=engine, processes=processes, device=device, ordered=False, describe=_names
            )
            for part in parts:
                writer.add(part)
                done += len(writer.part_ids(part.number))
                if progress is not None:
                    progress(Progress(done, total, resumed, time.monotonic() - start))
        return writer.finish()
    finally:
        writer.close()


def _names(task: Task) -> str:
    return f"the images {', '.join(name for name, _ in task.images)}"


def _portable(name: str, find: Callable[[str], Source]) -> Source | bytes | BadFileError:
    """Return a source that can be sent to another process: members of an archive are read here."""
    try:
        source = find(name)
        return source.read() if isinstance(source, ImageFile) and source.read is not None else source
    except BadFileError as error:
        return BadFileError(str(error))  # its own kind may not be known over there


def folder_images(folder: str | Path) -> dict[str, ImageFile]:
    """Return the photos in a folder and those below; an id is the path without its suffix.

    Two files that differ only in their suffix keep it, so that ids stay apart.
    """
    folder = Path(folder)
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in IMAGE_SUFFIXES and file.is_file())
    bare = [file.relative_to(folder).with_suffix("").as_posix() for file in files]
    seen = Counter(bare)
    return {
        file.relative_to(folder).as_posix() if seen[name] > 1 else name: ImageFile(file)
        for name, file in zip(bare, files, strict=True)
    }
