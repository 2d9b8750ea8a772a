"""What the adapters share: choosing regions among a detector's boxes, and a fingerprint of its weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from deixis import geometry
from deixis.types import Regions

ALIKE = 0.8
"""Of boxes that overlap by more than this only the best is kept: detectors without suppression repeat themselves."""


@dataclass(frozen=True, slots=True)
class Detections:
    """Everything a detector found in one image, in no order, with boxes in pixels of the original image."""

    boxes: Tensor  # (Q, 4)
    features: Tensor  # (Q, D)
    objectness: Tensor  # (Q,)
    class_probs: Tensor | None = None  # (Q, C)


def choose_regions(
    found: Detections, size: tuple[int, int], max_regions: int, fingerprint: str, class_names: tuple[str, ...]
) -> Regions:
    """Keep the best ``max_regions`` boxes that differ, and add the whole image.

    Such detectors do not describe the whole image; its feature is the mean of the kept regions, weighted by objectness.
    """
    boxes = geometry.clip_to(found.boxes.detach().float().cpu(), size)
    sides = boxes[:, 2:] - boxes[:, :2]
    usable = torch.nonzero(torch.isfinite(boxes).all(1) & (sides >= 1).all(1)).flatten()
    scores = found.objectness.detach().float().cpu()
    kept = usable[geometry.nms(boxes[usable], scores[usable], ALIKE)][:max_regions]
    features = found.features.detach().float().cpu()
    weights = scores[kept] / scores[kept].sum().clamp(min=1e-9) if len(kept) else scores[kept]
    whole = (weights @ features[kept])[None]  # (1, D)
    width, height = size
    probs = None if found.class_probs is None else found.class_probs.detach().float().cpu()
    return Regions(
        boxes=torch.cat([boxes[kept], torch.tensor([[0.0, 0.0, width, height]])]),
        features=torch.cat([features[kept], whole]),
        objectness=torch.cat([scores[kept], scores.new_zeros(1)]),
        class_probs=None if probs is None else torch.cat([probs[kept], probs.new_zeros(1, probs.shape[1])]),
        class_names=class_names,
        global_features=whole,
        size=size,
        fingerprint=fingerprint,
    )


def fingerprint_of(kind: str, model: nn.Module, settings: Mapping[str, Any]) -> str:
    """Return the adapter's name with a hash of all weights and of the settings that change what it finds."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return f"{kind}:{digest.hexdigest()[:12]}"
