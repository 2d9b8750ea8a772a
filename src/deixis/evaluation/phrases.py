"""Grounders measured on annotated phrases by ``deixis evaluate``.

Any-box is the protocol of InfoGround and merged-box that of ReIR; they differ by many points, so reports show both.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from deixis.data.parses import with_parses
from deixis.errors import DeixisError
from deixis.grounding.base import WordGrounder
from deixis.grounding.phrase_cases import _box, phrase_cases
from deixis.metrics.grounding.phrases import PROTOCOLS
from deixis.metrics.sections import phrase_section
from deixis.types import Box

if TYPE_CHECKING:
    from deixis.evaluation.evaluate import Evaluation


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
    if model.calibration is not None:
        from deixis.evaluation.calibrate_boxes import (  # it needs the evaluation, which needs this
            calibration_section,
            judged,
        )

        _, own, other = judged(work)
        work.sections.append(calibration_section(model.calibration, own, other))
