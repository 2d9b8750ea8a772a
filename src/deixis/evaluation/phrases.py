"""Grounders measured on annotated phrases: in training (``validation: {kind: phrases}``) and by ``deixis evaluate``.

Any-box is the protocol of InfoGround and merged-box that of ReIR; they differ by many points, so reports show both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from deixis.data.collate import CaptionEncoder, RegionSource, collate, encode_example
from deixis.data.parses import with_parses
from deixis.data.sampler import split
from deixis.errors import DeixisError
from deixis.evaluation.reference_attention import look_at_references
from deixis.grounding.base import LONGEST_SENTENCE, WordGrounder
from deixis.grounding.infoground import InfoGround
from deixis.metrics.grounding.dataset_words import DatasetWords, words_of_examples
from deixis.metrics.grounding.phrases import DEPTHS, PROTOCOLS, PhraseCase, score_phrases
from deixis.metrics.grounding.word_matches import match_attention
from deixis.metrics.sections import phrase_section
from deixis.objectives.info_nce import ImageContrastOptions, at_most, image_losses
from deixis.processes import gather_rows
from deixis.text.relations import RelationVocabulary
from deixis.text.vocabulary import Vocabulary
from deixis.training.dataset import TrainingData
from deixis.training.recipe import ValidationRecipe
from deixis.types import Box, Example, Phrase, Sentence

if TYPE_CHECKING:
    from accelerate import Accelerator

    from deixis.evaluation.evaluate import Evaluation

ATTENTION = "attention_accuracy"
METRICS = (*(f"R@{depth}" for depth in DEPTHS), "pointing")


@torch.no_grad()
def phrase_cases(
    model: WordGrounder,
    vocabulary: Vocabulary,
    examples: Sequence[Example],
    source: RegionSource,
    *,
    batch: int = 32,
    device: torch.device | str = "cpu",
) -> list[PhraseCase]:
    """Rank the regions of every annotated phrase. A phrase the model knows no word of has no ranked box: a miss."""
    # which predicate a relation has does not matter here, only whom it joins
    encoder = CaptionEncoder(vocabulary, LONGEST_SENTENCE, RelationVocabulary(()), supervision=True, label=_number)
    cases: list[PhraseCase] = []
    for first in range(0, len(examples), batch):
        part = [example for example in examples[first : first + batch] if example.captions]
        if not part:
            continue
        encoded = [encode_example(example, encoder) for example in part]
        regions = source.regions([example.id for example in part])
        logits, boxes = (part.cpu() for part in model.ranked_boxes(collate(encoded, regions).to(device)))  # (P, N)
        best = torch.topk(logits, min(DEPTHS[-1], logits.shape[1]), dim=1)
        best_boxes = boxes.gather(1, best.indices.unsqueeze(-1).expand(-1, -1, 4))  # (P, 10, 4)
        rows = zip(best.values.tolist(), best_boxes.tolist(), strict=True)
        for example, numbers in zip(part, encoded, strict=True):
            for sentence, caption in zip(example.captions, numbers.captions, strict=True):
                ranked: dict[int, tuple[Box, ...]] = {}
                for phrase, (values, places) in zip(caption.phrases, rows, strict=False):
                    ranked[phrase.label] = tuple(
                        _box(box) for value, box in zip(values, places, strict=True) if math.isfinite(value)
                    )
                cases += [
                    PhraseCase(example.id, _text(sentence, phrase), phrase.boxes, ranked.get(at, ()), phrase.types)
                    for at, phrase in enumerate(sentence.phrases)
                ]
    return cases


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


def evaluate_phrases(work: Evaluation) -> None:
    """Score a grounder on the phrases of a split, under both protocols, beside what its regions allow."""
    model = work.loaded.model
    if not isinstance(model, WordGrounder):
        raise DeixisError(f"{work.loaded.name} is no grounder of words")
    options = work.options
    if not any(phrase.boxes for e in work.examples for caption in e.captions for phrase in caption.phrases):
        work.notes.append("phrases were not scored: none of them has a box in this split")
        return
    if model.reads_relations:
        work.examples = tuple(with_parses(work.examples))
    began = time.perf_counter()
    cases = phrase_cases(
        model,
        work.loaded.vocabulary,
        work.examples,
        work.source,
        batch=max(1, options.batch // 4),
        device=options.device,
    )
    work.seconds["phrases"] = (time.perf_counter() - began) / len(work.examples)
    proposals: dict[str, list[Box]] = {}
    for example in work.examples:
        regions = work.source.regions([example.id])
        proposals[example.id] = [_box(row) for row in regions.boxes[0][regions.mask[0]].tolist()]
    for protocol in PROTOCOLS.values():
        work.sections.append(phrase_section(cases, protocol, proposals, **work.drawing))
    from deixis.evaluation.evaluate import evaluate_attention  # it knows this file by name only

    evaluate_attention(work)
    if model.calibration is not None:
        from deixis.evaluation.calibrate_boxes import (  # it needs the evaluation, which needs this
            calibration_section,
            judged,
        )

        _, own, other = judged(work)
        work.sections.append(calibration_section(model.calibration, own, other))


def _number(sentence: Sentence, phrase: Phrase) -> int:
    """Say which phrase of its sentence it is, so that it is found again after the encoder dropped others."""
    return next(at for at, other in enumerate(sentence.phrases) if other is phrase)


def _text(sentence: Sentence, phrase: Phrase) -> str:
    start, end = sentence.phrase_span(phrase)
    return sentence.text[start:end]


def _box(row: Sequence[float]) -> Box:
    x1, y1, x2, y2 = row
    return x1, y1, x2, y2
