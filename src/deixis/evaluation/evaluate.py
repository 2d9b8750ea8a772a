"""A model measured on a dataset, everything in one go, by asking it as people do and scoring what it says."""

from __future__ import annotations

from deixis.answering.load import Deixis
from deixis.evaluation.captions import measure_captions
from deixis.evaluation.category_answers import category_section
from deixis.evaluation.check import check_section
from deixis.evaluation.phrases import measure_phrases
from deixis.evaluation.retrieval import measure_retrieval
from deixis.evaluation.setting import Evaluation, EvaluationOptions, prepare
from deixis.evaluation.times import time_answers


def evaluate(model: Deixis, dataset: str, options: EvaluationOptions) -> Evaluation:
    """Measure what a model can do on a split of a dataset.

    Captions where it has a captioner; phrases, categories and retrieval where it has a grounder; the check of captions
    and the time of an answer where it has both.
    """
    work = prepare(model, dataset, options)
    captions, grounder = "attention" in model.methods, model.grounder is not None
    if captions:
        measure_captions(work)
    if grounder:
        measure_phrases(work)
        if work.dataset.names_every_object and any(example.objects for example in work.examples):
            work.sections.append(category_section(work))
        measure_retrieval(work)
    if captions and grounder:
        checked = check_section(work)
        if checked is None:
            work.notes.append("the check of captions was not measured: `deixis bundle --calibrate DATA` fits it")
        work.sections += [section for section in (checked, time_answers(work)) if section is not None]
    return work
