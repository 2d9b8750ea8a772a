"""Where a grounder finds annotated phrases: what validation and benchmarks score."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from deixis.data.collate import CaptionEncoder, RegionSource, collate, encode_example
from deixis.grounding.base import LONGEST_SENTENCE, WordGrounder
from deixis.metrics.grounding.phrases import DEPTHS, PhraseCase
from deixis.text.relations import RelationVocabulary
from deixis.text.vocabulary import Vocabulary
from deixis.types import Box, Example, Phrase, Sentence, box_of


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
                        box_of(box) for value, box in zip(values, places, strict=True) if math.isfinite(value)
                    )
                cases += [
                    PhraseCase(example.id, _text(sentence, phrase), phrase.boxes, ranked.get(at, ()), phrase.types)
                    for at, phrase in enumerate(sentence.phrases)
                ]
    return cases


def _number(sentence: Sentence, phrase: Phrase) -> int:
    """Say which phrase of its sentence it is, so that it is found again after the encoder dropped others."""
    return next(at for at, other in enumerate(sentence.phrases) if other is phrase)


def _text(sentence: Sentence, phrase: Phrase) -> str:
    start, end = sentence.phrase_span(phrase)
    return sentence.text[start:end]
