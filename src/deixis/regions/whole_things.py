"""A store of whole things only, made from another store: the control for what parts among the proposals do.

Regions that are one whole thing have a high objectness, parts (a sleeve, a face) and stuff (grass) a low one. A method
that seems to fail because it likes parts can be tried again where no parts are proposed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from deixis.errors import DeixisError
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import write_store
from deixis.types import Regions


def write_whole_things(
    store: RegionStore, path: str | Path, *, objectness: float = 0.2, most: int | None = None
) -> RegionStore:
    """Write the regions of a store that are at least so surely one whole thing, the surest first.

    The whole frame stays, as the last region of each frame. The new store has a fingerprint of its own: a model that
    learned from all regions does not take it by mistake.

    Args:
        store: Where the regions come from.
        path: Folder of the new store.
        objectness: Regions below it are left out.
        most: Keep at most so many regions of a frame.
    """
    if not 0 < objectness < 1:
        raise DeixisError(f"--objectness should lie between 0 and 1, got {objectness:g}")
    if most is not None and most < 1:
        raise DeixisError(f"--max-regions should be at least 1, got {most}")
    fingerprint = f"{store.fingerprint}+whole{objectness:g}" + (f"x{most}" if most is not None else "")
    failed = {entry["id"]: entry["reason"] for entry in store.header.failed}
    ids = [*store, *failed]

    def images() -> Iterator[tuple[str, Regions | str]]:
        for image in store:
            regions = store.get(image)
            yield image, replace(regions.take(whole_rows(regions, objectness, most)), fingerprint=fingerprint)
        yield from failed.items()

    settings = {**store.header.settings, "objectness": objectness, "most": most, "from": store.fingerprint}
    return write_store(path, images(), ids, fingerprint, settings)


def whole_rows(regions: Regions, objectness: float, most: int | None = None) -> Tensor:
    """Return the rows of the whole things of each frame, the surest first, and its whole-frame region, (M,)."""
    kept: list[Tensor] = []
    for frame in range(regions.frames):
        rows = torch.nonzero(regions.frame == frame).flatten()
        things = rows[:-1][regions.objectness[rows[:-1]] >= objectness]
        order = regions.objectness[things].argsort(descending=True, stable=True)
        kept += [things[order][:most], rows[-1:]]
    return torch.cat(kept)
