"""What every objective is called with, and what it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from deixis.captioning.model.captioner import Captioner, ScheduledSampling
from deixis.captioning.model.decoded import Decoded
from deixis.captioning.model.encoder import Encoded
from deixis.data.batch import Batch
from deixis.processes import masked_mean

__all__ = ["Context", "Objective", "masked_mean"]


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

    @property
    def captioner(self) -> Captioner:
        """The model, as a captioner."""
        if not isinstance(self.model, Captioner):
            raise TypeError(f"this objective trains a captioner, not a {type(self.model).__name__}")
        return self.model

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


class Objective(nn.Module):
    """A loss with a name. It owns its own parameters (localizer, heads); a teacher is frozen and not registered."""

    def hits(self, context: Context) -> dict[str, Tensor]:
        """Return by name, for each annotated word of a batch, whether it was found, (P,); {} where nothing points."""
        return {}

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return named, unweighted losses; a name that starts with ``_`` is logged and not trained on."""
        raise TypeError(f"{type(self).__name__} does not say what it computes")
