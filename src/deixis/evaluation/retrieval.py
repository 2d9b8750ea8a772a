"""Retrieval by a grounder: does a photo find its captions, and a caption its photo, among all the others?

The measure of SCAN (Lee et al., ECCV 2018, section 4.2), for every grounder that can say how well a caption fits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deixis.grounding.base import WordGrounder
from deixis.grounding.similarities import similarities
from deixis.metrics.report import Section
from deixis.metrics.retrieval import score_retrieval

if TYPE_CHECKING:
    from deixis.evaluation.evaluate import Evaluation

PROTOCOL = "image-text retrieval (SCAN)"


def measure_retrieval(work: Evaluation) -> None:
    """Add R@1, R@5 and R@10 both ways, among the first images of the split."""
    model = work.loaded.model
    assert isinstance(model, WordGrounder)
    options = work.options
    examples = [example for example in work.examples if example.captions][: options.retrieval]
    if len(examples) < 2:
        work.notes.append("retrieval was not scored: it needs at least two images")
        return
    try:
        found = similarities(model, work.loaded.vocabulary, examples, work.source, options.device)
    except TypeError as error:
        work.notes.append(f"retrieval was not scored: {error}")
        return
    result = score_retrieval(*found)
    scale = {name: 1.0 for name in result.scores if name.endswith("median_rank")}
    section = Section.of_samples(
        f"{PROTOCOL} among {len(examples)} images",
        len(found[1]),
        "captions",
        result.samples,
        tuple(example.id for example in examples),
        replicates=options.replicates,
        seed=options.seed,
        scores={name: result.scores[name] for name in scale},
    )
    work.sections.append(replace(section, scale=scale))
