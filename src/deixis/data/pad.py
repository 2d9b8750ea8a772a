"""Regions fresh from an extractor, padded into the batch a model is called with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from deixis.data.batch import RegionBatch
from deixis.errors import DeixisError
from deixis.types import Regions

PER_REGION = ("regionness", "class_probs", "word_probs")
PER_FRAME = ("global_features", "feature_map")


def pad_regions(
    regions: Sequence[Regions],
    ids: Sequence[str] | None = None,
    *,
    max_regions: int | None = None,
    whole: bool = True,
) -> RegionBatch:
    """Return regions of several images as one batch: float32, padded with zeros, the mask True for what is real.

    With ``max_regions`` the best so many of each frame are kept, and its whole-frame region if ``whole``. All must come
    from one extractor: features of two fingerprints do not mean the same.
    """
    if not regions:
        raise DeixisError("no regions to put into a batch")
    marks = {one.fingerprint for one in regions}
    if len(marks) > 1:
        raise DeixisError(f"regions of different extractors cannot share a batch: {', '.join(sorted(marks))}")
    kept = [one if max_regions is None else one.top(max_regions, whole=whole) for one in regions]
    count = max(len(one) for one in kept)
    real = torch.tensor([len(one) for one in kept])
    more: dict[str, Tensor] = {}
    for name in PER_REGION:
        rows = [getattr(one, name) for one in kept]
        if all(row is not None for row in rows):
            more[name] = _stack(rows, count)
    for name in PER_FRAME:
        rows = [getattr(one, name) for one in kept]
        if all(row is not None for row in rows):
            more[name] = _stack(rows, max(len(row) for row in rows))
    lines = [one.timeline for one in kept]
    if all(line is not None for line in lines):
        real_steps = [line for line in lines if line is not None]
        most = max(len(line) for line in real_steps)
        more["timeline"] = _stack(real_steps, most)
        more["timeline_mask"] = torch.arange(most) < torch.tensor([len(line) for line in real_steps]).unsqueeze(1)
    if "global_features" in more:
        frames = torch.tensor([one.frames for one in kept])
        more["frame_mask"] = torch.arange(more["global_features"].shape[1]) < frames.unsqueeze(1)
    return RegionBatch(
        ids=tuple(ids) if ids is not None else tuple(str(at) for at in range(len(kept))),
        features=_stack([one.features for one in kept], count),
        boxes=_stack([one.boxes for one in kept], count),
        mask=torch.arange(count) < real.unsqueeze(1),
        sizes=torch.tensor([one.size for one in kept], dtype=torch.float32),
        objectness=_stack([one.objectness for one in kept], count),
        frame=_stack([one.frame for one in kept], count).long(),
        **more,
    )


def _stack(rows: Sequence[Tensor], length: int) -> Tensor:
    out = torch.zeros(len(rows), length, *rows[0].shape[1:])
    for at, row in enumerate(rows):
        out[at, : len(row)] = row
    return out
