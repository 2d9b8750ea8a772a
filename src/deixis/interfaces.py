"""What the rooms agree on: the protocols through which extractors, captioners, grounders and rewards meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from torch import Tensor

from deixis.types import GroundedPhrases, Regions, Sentence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]
    """An RGB image, height x width x 3."""


@runtime_checkable
class Extractor(Protocol):
    """Finds and describes regions. Same pixels, same fingerprint: same regions, whatever else is in the batch."""

    @property
    def fingerprint(self) -> str:
        """Name, weights hash, settings and version in one short string."""
        ...

    def extract(self, images: Sequence[Pixels], *, max_regions: int = 100) -> list[Regions]:
        """Return at most ``max_regions`` regions and the whole image for each image."""
        ...


@runtime_checkable
class Grounder(Protocol):
    """Scores words and phrases against regions; may teach a captioner, reward it, or check a caption.

    ``batch`` is a ``deixis.data.batch.Batch``. Sampled captions are scored by putting them into a copy of their batch
    (``replace(batch, words=..., tags=..., image_of=...)``), so that regions are described once.
    """

    def attention(self, batch: Any) -> Tensor:
        """Return for each caption and word a distribution over its image's regions, (C, T, N)."""
        ...

    def match(self, batch: Any) -> Tensor:
        """Return how well each caption fits its image, (C,)."""
        ...

    def ground(self, regions: Regions, sentence: Sentence, phrases: Sequence[int] | None = None) -> GroundedPhrases:
        """Find the boxes of the sentence's phrases (all of them, or those at the given indices)."""
        ...


class Reward(Protocol):
    """Scores sampled captions for self-critical training, in one batched call."""

    def __call__(self, captions: Sequence[Sequence[str]], image_ids: Sequence[str]) -> Tensor:
        """Return one number per caption, (C,)."""
        ...
