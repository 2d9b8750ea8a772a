"""The regions of one image or clip: boxes, features, scores, and where they came from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Regions:
    """N regions over F frames (a photo is a clip of one frame), best first within a frame, its whole-frame region last.

    Boxes are x1 y1 x2 y2 in pixels of the original image after EXIF rotation. A box that a grounder moves keeps the
    feature of the proposal it came from. Scores and features may be half precision as read from a store.
    """

    boxes: Tensor  # (N, 4)
    features: Tensor  # (N, D)
    objectness: Tensor  # (N,) how surely this is one whole thing
    size: tuple[int, int]
    """Width and height of the image."""
    fingerprint: str
    """Names the extractor, its weights and its settings: features of different fingerprints never mix."""
    regionness: Tensor | None = None  # (N,) how surely this is a coherent region: a part, clothing, sky
    class_probs: Tensor | None = None  # (N, C) detector classes
    class_names: tuple[str, ...] = ()
    word_probs: Tensor | None = None  # (N, W) caption nouns and adjectives
    word_names: tuple[str, ...] = ()
    frame: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))  # (N,)
    global_features: Tensor | None = None  # (F, G)
    feature_map: Tensor | None = None  # (F, H, W, M) coarse grid
    timeline: Tensor | None = None  # (S, G) frames of a clip at a rate of its own, of which F were looked into

    def __post_init__(self) -> None:
        if self.frame.numel() == 0 and len(self.boxes):
            object.__setattr__(self, "frame", torch.zeros(len(self.boxes), dtype=torch.long))
        for name in ("features", "objectness", "regionness", "class_probs", "word_probs", "frame"):
            value = getattr(self, name)
            if value is not None and len(value) != len(self.boxes):
                raise ValueError(f"{name} has {len(value)} rows for {len(self.boxes)} boxes")

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def frames(self) -> int:
        """How many frames the regions come from."""
        if self.global_features is not None:
            return len(self.global_features)
        return int(self.frame.max()) + 1 if len(self) else 1

    def take(self, index: Tensor) -> Regions:
        """Return the regions at ``index`` (integers or a mask), with everything that is kept per frame."""
        rows = ("boxes", "features", "objectness", "regionness", "class_probs", "word_probs", "frame")
        return replace(self, **{name: value[index] for name in rows if (value := getattr(self, name)) is not None})

    def top(self, count: int, *, whole: bool = True) -> Regions:
        """Keep the first ``count`` regions of each frame and, if ``whole``, its whole-frame region, always its last."""
        kept: list[Tensor] = []
        for frame in range(self.frames):
            rows = torch.nonzero(self.frame == frame).flatten()
            kept += [rows[:-1][:count], rows[-1:] if whole else rows[:0]]
        return self.take(torch.cat(kept)) if kept else self
