"""Regions found when they are needed and kept for the next time: ``data.store: auto``, and evaluation without a store.

The folder is named after the photos themselves, so that a dataset to which photos were added gets a new store instead
of an error about the old one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from deixis.atomic import utf8
from deixis.data.dataset import Dataset
from deixis.engines import Engine
from deixis.home import cache_home
from deixis.regions.extraction.extract import extract
from deixis.regions.extraction.tasks import Settings, Source
from deixis.regions.registry import build_extractor
from deixis.regions.store.reader import HEADER, RegionStore

AUTO = "auto"


def kept_path(data: Dataset, ids: Sequence[str], fingerprint: str, settings: Settings) -> Path:
    """Return the folder for the regions of these images of a dataset."""
    facts = [str(data.path.resolve()), str(settings), *sorted(ids)]
    mark = hashlib.sha256(utf8("\n".join(facts))).hexdigest()[:8]
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in f"{data.name}-{fingerprint}")
    return cache_home() / "stores" / f"{name}-{mark}"


def regions_of(
    data: Dataset,
    settings: Settings,
    ids: Sequence[str] | None = None,
    *,
    device: str = "cpu",
    engine: Engine = "local",
    processes: int = 2,
) -> RegionStore:
    """Return the regions of some images: from the store of the whole dataset if there is one, else found now.

    Args:
        data: Where the images are.
        settings: The extractor and its settings.
        ids: Which images; all of the dataset when None.
        device: Where networks run.
        engine: ``local``, or ``ray`` for many machines.
        processes: How many workers find them.
    """
    fingerprint = build_extractor(settings.extractor, device=device).fingerprint
    every = data.ids()
    whole = kept_path(data, every, fingerprint, settings)
    if ids is None or (whole / HEADER).is_file():
        ids, path = every, whole
    else:
        path = kept_path(data, ids, fingerprint, settings)

    def source(name: str) -> Source:
        return data[name].source

    if not (path / HEADER).is_file():
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        console.print(f"finding the regions of {len(ids):,} images, once; they are kept in {path}", markup=False)
    return extract(ids, source, path, settings, device=device, engine=engine, processes=processes)
