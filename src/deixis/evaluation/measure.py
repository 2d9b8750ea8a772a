"""A bundle measured on a dataset, everything at once: captions, grounding F1, phrases, retrieval, time per photo."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

import torch

from deixis.answering.label import groundable
from deixis.answering.load import Deixis
from deixis.captioning.answer import reground
from deixis.captioning.search.fluent import fluent_search
from deixis.captioning.search.strategy import Strategy
from deixis.errors import DeixisError
from deixis.evaluation.calibrate_check import check_section
from deixis.evaluation.choice import choice_of
from deixis.evaluation.evaluate import (
    Evaluation,
    EvaluationOptions,
    caption_items,
    measure,
    prepare,
    with_model,
)
from deixis.metrics.grounding.dataset_words import words_of_examples
from deixis.metrics.report import Section
from deixis.metrics.sections import grounding_section
from deixis.types import GroundedCaption, ImageFile

TIMED = 12
"""Photos that are answered one by one to see how long it takes."""


def evaluate_bundle(model: Deixis, dataset: str, options: EvaluationOptions) -> Evaluation:
    """Measure a captioner and a grounder together, as :class:`~deixis.answering.load.Deixis` answers with them."""
    grounder = model.grounder
    if grounder is None:
        raise DeixisError(f"{model.name} has no grounder: measure it as a captioner, or name one (--grounder RUN)")
    options = replace(options, pointing=model.card.pointing)
    work = prepare(model.captioner, dataset, options)
    by_grounder = _repoint(model, work)
    work.choose = choice_of(model, work)
    if model.card.method == "grounder":
        work.repoint = by_grounder
    measure(work)
    _other_method(model, work, by_grounder)
    phrases = with_model(work, grounder)
    measure(phrases)
    shown = {section.protocol for section in work.sections}
    work.sections += [
        replace(section, protocol=f"{section.protocol}, the grounder") if section.protocol in shown else section
        for section in phrases.sections
    ]
    work.notes += [note for note in phrases.notes if note not in work.notes]
    work.seconds |= phrases.seconds
    checked = check_section(model, work)
    if checked is None:
        work.notes.append("the check of captions was not measured: `deixis bundle --calibrate DATA` fits it")
    work.sections += [section for section in (checked, time_answers(model, work)) if section is not None]
    return work


def answering_strategy(model: Deixis, beam: int) -> Strategy:
    """Return the search that ``deixis caption`` uses."""
    return fluent_search(model.captioner.vocabulary, beam, chosen=model.chooser is not None)


def _repoint(model: Deixis, work: Evaluation) -> Callable[[Sequence[GroundedCaption]], list[GroundedCaption]]:
    """Return what gives captions the grounder's boxes."""
    grounder = model.grounder
    assert grounder is not None
    judge, source = grounder.grounder(), with_model(work, grounder).source

    def repoint(captions: Sequence[GroundedCaption]) -> list[GroundedCaption]:
        seen = (source.get(caption.image) for caption in captions)
        return [reground(*pair, judge, grounder.vocabulary) for pair in zip(captions, seen, strict=True)]

    return repoint


def _other_method(
    model: Deixis, work: Evaluation, by_grounder: Callable[[Sequence[GroundedCaption]], list[GroundedCaption]]
) -> None:
    """Score the same captions with the boxes of the way of pointing that the bundle does not use."""
    if model.card.method == "grounder" or not any("grounding F1" in section.protocol for section in work.sections):
        return
    words = words_of_examples(work.examples, class_list=work.options.classes)
    items = caption_items(by_grounder(work.captions), work.examples, words)
    section = grounding_section(items, photos=all(c.segment is None for c in work.captions), **work.drawing)
    work.sections.append(replace(section, protocol=f"{section.protocol}, boxes of the grounder"))


def time_answers(model: Deixis, work: Evaluation, count: int = TIMED) -> Section | None:
    """Answer some photos one by one, from the file to the boxes, and return the median times in milliseconds."""
    examples = [example for example in work.examples if isinstance(example.source, ImageFile)][: count + 1]
    took: dict[str, list[float]] = {"regions_ms": [], "caption_ms": [], "phrases_ms": [], "answer_ms": []}
    for example in examples:
        assert isinstance(example.source, ImageFile)
        photo = example.source.read() if example.source.read is not None else example.source.path
        sentence = groundable(example.captions[0], model.words)
        began = time.perf_counter()
        seen = model.regions([photo])[0]
        found = time.perf_counter()
        model.caption(seen)
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
