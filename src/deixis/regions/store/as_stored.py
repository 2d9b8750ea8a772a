"""Fresh regions made equal to stored ones: models learned from stores, which round and leave out a little."""

from __future__ import annotations

from dataclasses import fields, replace

import torch
from torch import Tensor

from deixis.regions.store.shards import KEPT, WIDE, largest
from deixis.types import Regions

_EXACT = ("boxes", "frame")


def as_stored(regions: Regions, *, dense: bool = False) -> Regions:
    """Return regions as a store gives them back: scores and features in half precision, wide distributions cut.

    A store keeps the 16 largest entries of a distribution wider than 128 (unless ``dense``); a model that learned from
    those must not be shown all thousand.
    """
    changed: dict[str, Tensor] = {}
    for item in fields(regions):
        value = getattr(regions, item.name)
        if isinstance(value, Tensor) and item.name not in _EXACT:
            half = value.half()
            if item.name in ("class_probs", "word_probs") and value.shape[1] > WIDE and not dense:
                half = _largest(half)
            changed[item.name] = half
    return replace(regions, **changed)  # type: ignore[arg-type]


def _largest(values: Tensor) -> Tensor:
    order = torch.from_numpy(largest(values.numpy(force=True), KEPT)).to(values.device)
    return torch.zeros_like(values).scatter(1, order, values.gather(1, order))
