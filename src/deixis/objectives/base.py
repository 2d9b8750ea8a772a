"""What every objective is called with, and what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor, nn

from deixis.captioning.model.captioner import Captioner, ScheduledSampling
from deixis.captioning.model.decoded import Decoded
from deixis.captioning.model.encoder import Encoded
from deixis.data.batch import Batch
from deixis.errors import DeixisError
from deixis.interfaces import Model
from deixis.processes import masked_mean

__all__ = ["Context", "Need", "Objective", "masked_mean"]

M = TypeVar("M", bound=Model)


@dataclass(eq=False, slots=True)
class Context:
    """One training step: the model, the batch, and the passes that objectives share, each computed once.

    ``model`` is the captioner for the objectives of this room; grounders train through the same class.
    """

    model: Any
    batch: Batch
    step: int = 0
    """Optimizer steps done before this one, counted over all stages."""
    epoch: float = 0.0
    """Epochs done in this stage."""
    generator: torch.Generator | None = None
    """Source of all sampling in this step."""
    feed: ScheduledSampling | None = None
    """Scheduled sampling of the shared pass; set by ``cross_entropy``, or by the stage."""
    shared: dict[str, Any] = field(default_factory=dict)
    """What one objective computed and a later one of the stage needs, such as the localizer's weights."""
    _encoded: Encoded | None = field(default=None, repr=False)
    _first: Decoded | None = field(default=None, repr=False)

    def trained(self, kind: type[M]) -> M:
        """Return the model as what an objective trains."""
        if not isinstance(self.model, kind):
            raise DeixisError(f"this objective trains a {kind.__name__}, not a {type(self.model).__name__}")
        return self.model

    @property
    def captioner(self) -> Captioner:
        """The model, as a captioner."""
        return self.trained(Captioner)

    def encoded(self) -> Encoded:
        """The encoded images of the batch."""
        if self._encoded is None:
            self._encoded = self.captioner.encode(self.batch.regions)
        return self._encoded

    def first(self) -> Decoded:
        """The teacher-forced pass over the batch's captions."""
        if self._first is None:
            batch = self.batch
            self._first = self.captioner.decode(self.encoded(), batch.words, batch.image_of, feed=self.feed)
        return self._first


Need = Literal["tags", "boxes", "classes", "phrases"]
"""What an objective needs of the captions: tags of their words and phrases (``data.parse``), human boxes of phrases
(``data.supervision``), their object classes (``data.classes``), or phrases (annotated, or parsed)."""


class Objective(nn.Module):
    """A loss with a name. It owns its own parameters (localizer, heads); a teacher is frozen and not registered.

    What it trains and needs is declared on the class, so that a recipe that cannot work is refused when it is read.
    """

    trains: ClassVar[type[Model]] = Captioner
    """The kind of model whose loss it is."""
    needs: ClassVar[frozenset[Need]] = frozenset()
    """What it trains nothing without."""

    @classmethod
    def needed(cls, options: Mapping[str, Any]) -> frozenset[Need]:
        """Return what it needs with these options of a recipe."""
        return cls.needs

    def hits(self, context: Context) -> dict[str, Tensor]:
        """Return by name, for each annotated word of a batch, whether it was found, (P,); {} where nothing points."""
        return {}

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return named, unweighted losses; a name that starts with ``_`` is logged and not trained on."""
        raise TypeError(f"{type(self).__name__} does not say what it computes")
