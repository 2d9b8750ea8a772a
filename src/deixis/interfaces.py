"""What the rooms agree on: the protocols through which extractors and grounders meet, and what every model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from deixis.errors import DeixisError
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

    @property
    def tells_presence(self) -> bool:
        """Whether its answers say how probably a phrase is in the image at all; here they do not."""
        return False

    def attention(self, batch: Any) -> Tensor:
        """Return for each caption and word a distribution over its image's regions, (C, T, N)."""
        ...

    def match(self, batch: Any) -> Tensor:
        """Return how well each caption fits its image, (C,)."""
        ...

    def ground(self, regions: Regions, sentence: Sentence, phrases: Sequence[int] | None = None) -> GroundedPhrases:
        """Find the boxes of the sentence's phrases (all of them, or those at the given indices)."""
        ...

    def ground_all(self, regions: Regions, sentences: Sequence[Sentence]) -> list[GroundedPhrases]:
        """Find the boxes of all phrases of several sentences about one image; here one sentence after the other."""
        return [self.ground(regions, sentence) for sentence in sentences]


class Model(nn.Module):
    """What a recipe trains. Abilities that not every model has stand here, with what it means to lack them."""

    part: ClassVar[Literal["captioner", "grounder"]] = "grounder"
    """Its place in a bundle."""
    reads_regions: ClassVar[tuple[str, ...]] = ()
    """Beginnings of the names of weights that read what an extractor gives: other regions mean nothing to them."""

    def start(self) -> None:
        """Take over from others what a new model begins with; a loaded one carries it in its own weights."""

    def adopt(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights of the model it starts from in its own form; here they are in it already."""
        return dict(weights)

    def as_grounder(self, vocabulary: Any) -> Grounder:
        """Return the model as a grounder; ``vocabulary`` is a ``deixis.text.vocabulary.Vocabulary``."""
        raise DeixisError(f"a {type(self).__name__} cannot find phrases: name a captioner or a grounder")


def device_of(module: nn.Module) -> torch.device:
    """Return where a model lives; the CPU for one without weights."""
    return next((weight.device for weight in module.parameters()), torch.device("cpu"))
