"""A store for captions without images, so that models of text alone train through the same loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from deixis.regions.store.reader import RegionStore, StoreHeader

NAME = "none"
"""What a recipe's ``data.store`` says to train on captions alone."""


class NoRegions(RegionStore):
    """Has every image, and no region of any."""

    def __init__(self) -> None:
        super().__init__(Path(NAME), StoreHeader(fingerprint=NAME, settings={}), ())

    def __contains__(self, image: object) -> bool:
        return True

    def __reduce__(self) -> tuple[Any, tuple[()]]:  # type: ignore[override]
        return NoRegions, ()

    def batch(
        self,
        images: Sequence[str],
        fields: Iterable[str] | None = None,
        *,
        max_regions: int | None = None,
        whole: bool = True,
        sizes: Mapping[str, tuple[int, int]] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> dict[str, Tensor]:
        """Return the same keys as any store, with no region in any row."""
        count = len(images)
        return {
            "boxes": torch.zeros(count, 0, 4),
            "frame": torch.zeros(count, 0, dtype=torch.long),
            "sizes": torch.ones(count, 2, dtype=dtype),
            "mask": torch.zeros(count, 0, dtype=torch.bool),
            "features": torch.zeros(count, 0, 0, dtype=dtype),
            "objectness": torch.zeros(count, 0, dtype=dtype),
        }
