"""Captions for photos that are not in any dataset: pixels in, a grounded caption out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from deixis.captioning.answer import Pointing, bad_endings, grounded_captions
from deixis.captioning.captioner import Captioner
from deixis.captioning.distributed import DistributedAttention
from deixis.captioning.strategy import Strategy
from deixis.data.pad import pad_regions
from deixis.errors import DeixisError
from deixis.images import load_image
from deixis.interfaces import Extractor
from deixis.training.models import LoadedModel, load
from deixis.types import GroundedCaption


@dataclass(frozen=True, slots=True)
class PhotoCaptioner:
    """A captioner with the extractor of its regions.

    >>> PhotoCaptioner.load("runs/baseline").caption("photo.jpg").text  # doctest: +SKIP
    'A dog runs through the snow.'
    """

    loaded: LoadedModel
    captioner: Captioner
    extractor: Extractor
    strategy: Strategy
    pointing: Pointing
    device: str = "cpu"

    @classmethod
    def load(cls, model: str = "lite", *, beam: int = 3, device: str = "cpu") -> Self:
        """Load a captioner by name; beam 1 is greedy search. Captions neither repeat three words nor end on "a"."""
        loaded = load(model, device=device)
        if not isinstance(loaded.model, Captioner):
            raise DeixisError(f"{model} is a {loaded.kind}, not a captioner")
        endings = bad_endings(loaded.vocabulary)
        strategy = Strategy("greedy" if beam == 1 else "beam", width=beam, block_trigrams=True, bad_endings=endings)
        return cls(loaded, loaded.model, loaded.extractor(device), strategy, Pointing(), device)

    def caption(self, photo: str | Path, name: str | None = None) -> GroundedCaption:
        """Caption one photo; boxes are in its pixels as it is shown."""
        pixels = np.asarray(load_image(photo))
        recipe = self.loaded.config.recipe.data
        most = int(self.loaded.config.extractor.get("max_regions", 100))
        regions = self.extractor.extract([pixels], max_regions=most)[0].top(recipe.regions)
        batch = replace(pad_regions([regions]), ids=(name or str(photo),)).to(self.device)
        generated = self.captioner.generate(batch, self.strategy)
        branches = isinstance(self.captioner.decoder.attention, DistributedAttention)
        answer = grounded_captions(generated, batch, self.loaded.vocabulary, self.pointing, branches=branches)[0]
        return replace(answer, model=self.loaded.name)
