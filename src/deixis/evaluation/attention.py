"""Where a model looks at the annotated words of the references (GVD's attention accuracy; POS-SCAN, table 1)."""

from __future__ import annotations

from dataclasses import replace

from deixis.captioning.model.captioner import Captioner
from deixis.errors import DeixisError
from deixis.evaluation.setting import Evaluation
from deixis.grounding.base import WordGrounder
from deixis.metrics.grounding.attention_accuracy import score_attention
from deixis.metrics.grounding.dataset_words import DatasetWords, words_of_examples
from deixis.metrics.grounding.object_words import AnnotatedAttention
from deixis.metrics.sections import attention_section
from deixis.models.names import LoadedModel
from deixis.models.reference_attention import look_at_references
from deixis.types import ClipSegment


def attention_on_references(work: Evaluation, part: LoadedModel, words: DatasetWords) -> list[AnnotatedAttention]:
    """Feed every reference and see where a captioner or a grounder looks at its annotated words."""
    assert isinstance(part.model, Captioner | WordGrounder)
    return look_at_references(
        part.model,
        part.vocabulary,
        work.examples,
        words,
        work.source(part),
        pointing=work.asking.pointing or work.model.card.pointing,
        batch=max(1, work.options.batch // 4),
        device=work.model.device,
    )


def measure_attention(work: Evaluation, part: LoadedModel, words: DatasetWords | None = None) -> None:
    """Add the attention accuracy of a captioner or a grounder."""
    try:
        if words is None:
            words = words_of_examples(work.examples, class_list=work.options.classes)
            work.notes += [note for note in words.notes if note not in work.notes]
        looked = score_attention(attention_on_references(work, part, words))
    except DeixisError as error:  # a grounder is measured without a parser, and where no phrase names a class
        work.notes.append(f"attention was not scored: {error}")
        return
    photos = not any(isinstance(example.source, ClipSegment) for example in work.examples)
    section = attention_section(looked, photos=photos, **work.drawing)
    if section.protocol in {shown.protocol for shown in work.sections}:
        section = replace(section, protocol=f"{section.protocol}, the grounder")
    work.sections.append(section)
