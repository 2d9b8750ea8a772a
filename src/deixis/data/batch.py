"""What a model is called with: regions of B images, padded, and C captions that point at their images.

Batching, padding and masks live here and in ``collate.py`` alone. Masks are True for what is real. Five captions of a
photo share its row of regions, so region work is done once per photo.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Self

import torch
from torch import Tensor

from deixis.data.encode import WordKind as WordKind


class _Movable:
    """Moves every tensor of a dataclass, also inside nested ones and mappings."""

    __slots__ = ()

    def to(self, device: torch.device | str) -> Self:
        """Return the same batch with its tensors on ``device``."""
        moved: dict[str, object] = {}
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if isinstance(value, Tensor | _Movable):
                moved[item.name] = value.to(device)
            elif isinstance(value, Mapping):
                moved[item.name] = {key: entry.to(device) for key, entry in value.items()}
        return replace(self, **moved)  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class RegionBatch(_Movable):
    """Regions of B images or clips, padded to N regions and F frames."""

    ids: tuple[str, ...]
    features: Tensor  # (B, N, D)
    boxes: Tensor  # (B, N, 4) pixels of the original image
    mask: Tensor  # (B, N)
    sizes: Tensor  # (B, 2) width and height
    objectness: Tensor  # (B, N)
    frame: Tensor  # (B, N) 0 for photos
    regionness: Tensor | None = None  # (B, N)
    class_probs: Tensor | None = None  # (B, N, C)
    word_probs: Tensor | None = None  # (B, N, W)
    global_features: Tensor | None = None  # (B, F, G)
    frame_mask: Tensor | None = None  # (B, F)
    feature_map: Tensor | None = None  # (B, F, H, W, M)
    timeline: Tensor | None = None  # (B, S, G) frames of clips at a rate of their own
    timeline_mask: Tensor | None = None  # (B, S)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def boxes_normalised(self) -> Tensor:
        """Boxes as shares of each image's width and height, (B, N, 4)."""
        return self.boxes / self.sizes.repeat(1, 2).unsqueeze(1)


@dataclass(frozen=True, slots=True)
class PhraseBatch(_Movable):
    """P phrases of all captions of a batch, as spans of positions in ``Batch.words``."""

    caption: Tensor  # (P,) row of the caption
    first: Tensor  # (P,)
    last: Tensor  # (P,) exclusive
    head: Tensor  # (P,) position of the head word


@dataclass(frozen=True, slots=True)
class RelationBatch(_Movable):
    """R relations between phrases: ``subject`` and ``object`` are rows of the PhraseBatch, ``predicate`` a class id."""

    subject: Tensor  # (R,)
    predicate: Tensor  # (R,) 0 for a predicate outside the relation vocabulary
    object: Tensor  # (R,)


@dataclass(frozen=True, slots=True)
class PhraseBoxes(_Movable):
    """Human boxes of the phrases. Present only where a recipe says ``supervision``."""

    boxes: Tensor  # (P, M, 4)
    mask: Tensor  # (P, M)
    frame: Tensor  # (P, M)
    label: Tensor  # (P,) object class id, -1 for none


@dataclass(frozen=True, slots=True)
class Batch(_Movable):
    """Regions and captions. ``words`` are what is to be said: they end with the end token and are padded with 0."""

    regions: RegionBatch
    words: Tensor  # (C, T)
    image_of: Tensor  # (C,) row of the regions for each caption
    tags: Tensor  # (C, T) a WordKind for each word
    phrases: PhraseBatch | None = None
    relations: RelationBatch | None = None
    phrase_boxes: PhraseBoxes | None = None
    references: tuple[tuple[str, ...], ...] = ()
    """Per image, all its captions as text."""
    caption_ids: tuple[str, ...] = ()
    """``IMAGE#INDEX`` per caption: the key of cached teacher attention and negatives."""
    cached: Mapping[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def word_mask(self) -> Tensor:
        """True for words and the end token, (C, T)."""
        return self.words != 0
