"""Captions of a split, measured: what they say, where their words point, and where references are looked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from deixis.answering.asking import Asking
from deixis.answering.load import Deixis
from deixis.answering.work import Source, load_there
from deixis.data.collate import sizes_of
from deixis.engines import run_tasks
from deixis.errors import DeixisError, MissingExtraError
from deixis.evaluation.attention import measure_attention
from deixis.evaluation.setting import Evaluation, regions_for
from deixis.metrics.captions.believable import believable_section
from deixis.metrics.captions.densecap import events_of_clips, score_dense_captions
from deixis.metrics.captions.java import find_java, jar_folder
from deixis.metrics.captions.scores import score_captions
from deixis.metrics.grounding.dataset_words import DatasetWords, words_of_caption, words_of_examples
from deixis.metrics.grounding.object_words import GroundedItem
from deixis.metrics.sections import caption_section, dense_section, grounding_section
from deixis.regions.store.reader import RegionStore
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
    if all(isinstance(example.source, ClipSegment) for example in work.examples):
        said, written = events_of_clips(work.examples, texts)
        work.sections.append(dense_section(score_dense_captions(said, [written], metrics), **work.drawing))
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


class Captioning:
    """A worker of an engine: a model, the regions of all images, and how it is asked."""

    def __init__(self, model: Deixis, store: RegionStore, asking: Asking) -> None:
        self.model, self.store, self.asking = model, store, asking

    @classmethod
    def load(cls, source: Source, expected: str, device: str, store: RegionStore, asking: Asking) -> Captioning:
        """Load the model in the process that works; it opens the store anew, at the same place."""
        return cls(load_there(source, expected, device, extractor=False), store, asking)

    def __call__(self, images: list[tuple[str, tuple[int, int] | None]]) -> list[GroundedCaption]:
        """Caption images together, given by their names and the sizes of their boxes."""
        seen = regions_for(self.model, self.store, images)
        return self.model.captions(seen, self.asking, names=[image for image, _ in images])


def caption_examples(work: Evaluation) -> list[GroundedCaption]:
    """Ask for a caption of every image of the split, as people do: here, or on Ray, with the same images together."""
    options, sizes = work.options, sizes_of(work.examples)
    images = [(example.id, sizes.get(example.id)) for example in work.examples]
    groups = [images[first : first + options.batch] for first in range(0, len(images), options.batch)]
    there = options.source if options.engine == "ray" else None
    build: Callable[[], Captioning] = lambda: Captioning(work.model, work.store, work.asking)  # noqa: E731
    if there is not None:
        build = partial(Captioning.load, there, work.model.name, work.model.device, work.store, work.asking)
    found = run_tasks(
        groups,
        build,
        engine="local" if there is None else "ray",
        processes=0 if there is None else options.processes,
        device=work.model.device,
    )
    answers = [answer for group in found for answer in group]
    return [_placed(answer, example) for answer, example in zip(answers, work.examples, strict=True)]


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
