"""How long an answer takes."""

from __future__ import annotations

import time
from statistics import median

import torch

from deixis.answering.label import groundable
from deixis.evaluation.setting import Evaluation
from deixis.metrics.report import Section
from deixis.types import ImageFile

TIMED = 12
"""Photos that are answered one by one to see how long it takes."""


def time_answers(work: Evaluation, count: int = TIMED) -> Section | None:
    """Answer some photos one by one, from the file to the boxes, and return the median times in milliseconds."""
    model = work.model
    examples = [example for example in work.examples if isinstance(example.source, ImageFile)][: count + 1]
    took: dict[str, list[float]] = {"regions_ms": [], "caption_ms": [], "phrases_ms": [], "answer_ms": []}
    for example in examples:
        assert isinstance(example.source, ImageFile)
        photo = example.source.read() if example.source.read is not None else example.source.path
        sentence = groundable(example.captions[0], model.words)
        began = time.perf_counter()
        seen = model.regions([photo])[0]
        found = time.perf_counter()
        model.caption(seen, work.asking)
        said = time.perf_counter()
        model.ground_sentences(seen, [sentence])
        done = time.perf_counter()
        for name, seconds in zip(took, (found - began, said - found, done - said, done - began), strict=True):
            took[name].append(1000 * seconds)
    if len(examples) < 2:
        return None
    scores = {name: median(values[1:]) for name, values in took.items()}  # the first one warms up
    protocol = f"median time per photo, one at a time, {torch.get_num_threads()} threads, milliseconds"
    return Section(protocol, len(examples) - 1, "photos", scores, scale=dict.fromkeys(scores, 1.0))
