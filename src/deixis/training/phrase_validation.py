"""Grounders measured on annotated phrases while they train: ``validation: {kind: phrases}``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from deixis.data.sampler import split
from deixis.errors import DeixisError
from deixis.grounding.base import WordGrounder
from deixis.grounding.infoground import InfoGround
from deixis.grounding.phrase_cases import phrase_cases
from deixis.metrics.grounding.dataset_words import DatasetWords, words_of_examples
from deixis.metrics.grounding.phrases import DEPTHS, PROTOCOLS, score_phrases
from deixis.metrics.grounding.word_matches import match_attention
from deixis.models.reference_attention import look_at_references
from deixis.objectives.info_nce import ImageContrastOptions, at_most, image_losses
from deixis.processes import gather_rows
from deixis.training.dataset import TrainingData
from deixis.training.recipe import ValidationRecipe
from deixis.types import Example

if TYPE_CHECKING:
    from accelerate import Accelerator

ATTENTION = "attention_accuracy"
METRICS = (*(f"R@{depth}" for depth in DEPTHS), "pointing")


class PhraseValidation:
    """R@1, R@5, R@10 and pointing under the recipe's protocol; for InfoGround also the bound of its figure 4.

    With ``metric: attention_accuracy`` also that, which POS-SCAN chooses its matcher by: the mean over the object
    classes of ``data.classes`` (or every head noun) of how often the most attended region is right.
    """

    def __init__(self, recipe: ValidationRecipe, data: TrainingData) -> None:
        if data.validation is None:
            raise DeixisError("the recipe has no validation split")
        if not any(phrase.boxes for e in data.validation_examples for c in e.captions for phrase in c.phrases):
            raise DeixisError("no phrase of the validation split has a box: choose another split or validation")
        self.recipe, self.data, self.images = recipe, data, data.validation
        self.protocol = PROTOCOLS[recipe.protocol]
        self.words: DatasetWords | None = None
        if recipe.metric == ATTENTION:
            self.words = words_of_examples(data.validation_examples, class_list=data.classes or None)

    def __call__(self, model: WordGrounder, accelerator: Accelerator) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """Return the scores by name; there are no samples."""
        rows = split(torch.arange(len(self.images)).numpy(), accelerator.num_processes)[accelerator.process_index]
        examples = [self.data.validation_examples[row] for row in rows]
        cases = phrase_cases(
            model,
            self.data.vocabulary,
            examples,
            self.images.source,
            batch=self.recipe.batch,
            device=accelerator.device,
        )
        count = sum(bool(case.boxes) for case in cases)
        scores = score_phrases(cases, self.protocol).scores if count else dict.fromkeys(METRICS, 0.0)
        sums = [float(count), *(scores[name] * count for name in METRICS)]
        if isinstance(model, InfoGround):
            sums += self._bound(model, rows.tolist(), accelerator.device)
        gathered = gather_rows(torch.tensor([sums], dtype=torch.float64).to(accelerator.device))
        total = gathered.sum(0).tolist()
        metrics = {name: value / max(total[0], 1) for name, value in zip(METRICS, total[1:], strict=False)}
        if isinstance(model, InfoGround):
            metrics["bound"] = total[-2] / max(total[-1], 1)
        if self.words is not None:
            metrics[ATTENTION] = self._attention_accuracy(model, examples, self.words, accelerator.device)
        return metrics, []

    def _attention_accuracy(
        self, model: WordGrounder, examples: Sequence[Example], words: DatasetWords, device: torch.device
    ) -> float:
        """Return the attention accuracy over the images of all processes, each of which looks at its own."""
        looked = look_at_references(
            model,
            self.data.vocabulary,
            examples,
            words,
            self.images.source,
            batch=self.recipe.batch,
            device=device,
        )
        labels = {word.label: 0 for sentences in words.sentences.values() for one in sentences for word in one.words}
        labels = {label: at for at, label in enumerate(labels)}
        matches = match_attention(looked, labels)
        counts = torch.zeros(1, 2, len(labels), dtype=torch.float64)
        for label, hit in zip(matches.label, matches.hit, strict=True):
            counts[0, :, label] += torch.tensor([float(hit), 1.0], dtype=torch.float64)
        hits, annotated = gather_rows(counts.to(device)).sum(0)
        seen = annotated > 0
        return float((hits[seen] / annotated[seen]).mean()) if bool(seen.any()) else 0.0

    @torch.no_grad()
    def _bound(self, model: InfoGround, rows: list[int], device: torch.device) -> list[float]:
        """Return the sum of log k - L over words (equation 5), and how many words there are."""
        total, words = 0.0, 0
        for first in range(0, len(rows), self.recipe.batch):
            batch = self.images.batch(rows[first : first + self.recipe.batch]).to(device)
            limit = torch.Generator().manual_seed(0)
            chosen = at_most(model.content_words(batch), ImageContrastOptions().words, limit)
            losses, images = image_losses(model, batch, chosen, gather=False)
            total += float((math.log(images) - losses).sum())
            words += len(losses)
        return [total, float(words)]
