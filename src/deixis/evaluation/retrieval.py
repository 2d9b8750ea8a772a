"""Retrieval by a grounder: does a photo find its captions, and a caption its photo, among all the others?

The measure of SCAN (Lee et al., ECCV 2018, section 4.2), for every grounder that can say how well a caption fits.
"""

from __future__ import annotations

from dataclasses import replace

from deixis.evaluation.setting import Evaluation
from deixis.grounding.base import WordGrounder
from deixis.grounding.similarities import similarities
from deixis.metrics.report import Section
from deixis.metrics.retrieval import score_retrieval

PROTOCOL = "image-text retrieval (SCAN)"


def measure_retrieval(work: Evaluation) -> None:
    """Add R@1, R@5 and R@10 both ways, among the first images of the split."""
    options, grounder, most = work.options, work.model.grounder, work.options.among(work.model)
    if not most or grounder is None or not isinstance(grounder.model, WordGrounder):
        return
    examples = [example for example in work.examples if example.captions][:most]
    if len(examples) < 2:
        work.notes.append("retrieval was not scored: it needs at least two images")
        return
    try:
        found = similarities(grounder.model, grounder.vocabulary, examples, work.source(grounder), work.model.device)
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
