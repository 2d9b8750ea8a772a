"""Annotated phrases, looked for as people look for them, and scored.

Any-box is the protocol of InfoGround and merged-box that of ReIR; they differ by many points, so reports show both.
"""

from __future__ import annotations

import time

from deixis.answering.phrases import as_asked
from deixis.evaluation.attention import measure_attention
from deixis.evaluation.calibration import calibration_section, judged
from deixis.evaluation.setting import Evaluation
from deixis.grounding.base import WordGrounder
from deixis.metrics.grounding.phrases import PROTOCOLS, PhraseCase
from deixis.metrics.sections import phrase_section
from deixis.types import Box, Example, Regions, box_of


def measure_phrases(work: Evaluation) -> None:
    """Score a grounder on the phrases of a split, under both protocols, beside what its regions allow."""
    grounder = work.model.grounder
    assert grounder is not None
    if not any(phrase.boxes for e in work.examples for caption in e.captions for phrase in caption.phrases):
        work.notes.append("phrases were not scored: none of them has a box in this split")
        return
    cases: list[PhraseCase] = []
    proposals: dict[str, list[Box]] = {}
    source = work.source(grounder)
    began = time.perf_counter()
    for example in work.examples:
        seen = source.get(example.id)
        cases += phrase_cases(work, example, seen)
        proposals[example.id] = [box_of(row) for row in seen.boxes.tolist()]
    work.seconds["phrases"] = (time.perf_counter() - began) / len(work.examples)
    for protocol in PROTOCOLS.values():
        work.sections.append(phrase_section(cases, protocol, proposals, **work.drawing))
    if isinstance(grounder.model, WordGrounder) and grounder.model.calibration is not None:
        _, own, other = judged(work)
        work.sections.append(calibration_section(grounder.model.calibration, own, other))
    measure_attention(work, grounder)


def phrase_cases(work: Evaluation, example: Example, seen: Regions) -> list[PhraseCase]:
    """Ask for every phrase of an image's captions. One the model knows no word of has no ranked box: a miss."""
    sentences = [as_asked(caption, work.model.words) for caption in example.captions if caption.phrases]
    if not sentences:
        return []
    return [
        PhraseCase(example.id, answer.text, phrase.boxes, answer.ranked, phrase.types)
        for sentence, answers in zip(sentences, work.model.ground_sentences(seen, sentences), strict=True)
        for phrase, answer in zip(sentence.phrases, answers.phrases, strict=True)
    ]
