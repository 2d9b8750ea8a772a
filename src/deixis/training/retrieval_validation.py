"""Validation of grounders where nobody drew boxes: do captions find their photos among those of the validation split?

Retrieval is not pointing. It tells whether the grounder knows what the words look like, which is what photos and
captions can tell; where things are must be looked at, or measured on phrases with boxes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deixis.errors import DeixisError
from deixis.grounding.base import WordGrounder
from deixis.grounding.similarities import similarities
from deixis.metrics.retrieval import score_retrieval
from deixis.training.dataset import TrainingData
from deixis.training.recipe import ValidationRecipe

if TYPE_CHECKING:
    from accelerate import Accelerator

MOST = 200
"""Images at most: every caption is compared with every image."""


class RetrievalValidation:
    """R@1, R@5 and R@10 both ways, and ``retrieval``, their mean. Every process measures the same."""

    def __init__(self, recipe: ValidationRecipe, data: TrainingData) -> None:
        if data.validation is None or len(data.validation) < 2:
            raise DeixisError("retrieval needs a validation split of at least two images")
        self.data, self.images = data, data.validation

    def __call__(self, model: WordGrounder, accelerator: Accelerator) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """Return the scores by name; there are no samples."""
        examples = self.data.validation_examples[:MOST]
        found = similarities(model, self.data.vocabulary, examples, self.images.source, accelerator.device)
        scores = score_retrieval(*found).scores
        shares = {name: value for name, value in scores.items() if not name.endswith("median_rank")}
        return {"retrieval": sum(shares.values()) / len(shares), **shares}, []
