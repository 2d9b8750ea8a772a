"""Captions of a split, measured: what they say, where their words point, and where references are looked for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from deixis.errors import DeixisError, MissingExtraError
from deixis.evaluation.attention import measure_attention
from deixis.evaluation.setting import Evaluation
from deixis.metrics.captions.believable import believable_section
from deixis.metrics.captions.java import find_java, jar_folder
from deixis.metrics.captions.scores import score_captions
from deixis.metrics.grounding.dataset_words import DatasetWords, words_of_caption, words_of_examples
from deixis.metrics.grounding.object_words import GroundedItem
from deixis.metrics.sections import caption_section, grounding_section
from deixis.types import ClipSegment, Example, GroundedCaption
from deixis.video import sample_times


def measure_captions(work: Evaluation) -> None:
    """Captions, their grounding, and attention on the references."""
    began = time.perf_counter()
    work.captions = caption_examples(work)
    work.seconds["captions"] = (time.perf_counter() - began) / len(work.examples)
    texts = {caption.image: caption.text for caption in work.captions}
    references = {example.id: [caption.text for caption in example.captions] for example in work.examples}
    metrics = work.options.metrics
    if "meteor" not in metrics and _has_meteor():
        metrics = (*metrics, "meteor")
    work.sections.append(caption_section(score_captions(texts, references, metrics), **work.drawing))
    work.sections.append(believable_section(work.captions, references, **work.drawing))
    try:
        words = words_of_examples(work.examples, class_list=work.options.classes)
    except DeixisError as error:
        if "have no boxes" not in str(error):
            raise
        work.notes.append(f"grounding was not scored: {error}")
        return
    work.notes += words.notes
    photos = all(caption.segment is None for caption in work.captions)
    items = caption_items(work.captions, work.examples, words)
    work.sections.append(grounding_section(items, photos=photos, **work.drawing))
    measure_attention(work, work.model.captioner, words)
    if work.model.grounder is None or work.model.method_of(work.asking) == "grounder":
        return
    # the same captions with the boxes of the way of pointing that was not asked for
    seen = work.seen([caption.image for caption in work.captions])
    other = [work.model.repointed(caption, one) for caption, one in zip(work.captions, seen, strict=True)]
    section = grounding_section(caption_items(other, work.examples, words), photos=photos, **work.drawing)
    work.sections.append(replace(section, protocol=f"{section.protocol}, boxes of the grounder"))


def _has_meteor() -> bool:
    try:
        find_java()
        jar_folder("meteor")
    except MissingExtraError:
        return False
    return True


def caption_examples(work: Evaluation) -> list[GroundedCaption]:
    """Ask for a caption of every image of the split, as people do."""
    found: list[GroundedCaption] = []
    for first in range(0, len(work.examples), work.options.batch):
        examples = work.examples[first : first + work.options.batch]
        images = [example.id for example in examples]
        answers = work.model.captions(work.seen(images), work.asking, names=images)
        found += [_placed(answer, example) for answer, example in zip(answers, examples, strict=True)]
    return found


def _placed(caption: GroundedCaption, example: Example) -> GroundedCaption:
    """Say of a clip about which seconds its caption is: clips are scored by rules of their own."""
    source = example.source
    if not isinstance(source, ClipSegment):
        return caption
    times = sample_times(source.start, source.end, source.frames)
    return replace(caption, segment=(source.start, source.end), frame_times=times)


def caption_items(
    captions: Sequence[GroundedCaption], examples: Sequence[Example], words: DatasetWords
) -> list[GroundedItem]:
    """Lay generated captions beside their references, for grounding F1."""
    sizes = {example.id: example.size for example in examples}
    return [
        GroundedItem(
            caption.image,
            words.sentences[caption.image],
            words_of_caption(caption, words.classes, sizes[caption.image]),
        )
        for caption in captions
    ]
