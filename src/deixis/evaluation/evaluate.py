"""A model measured on a dataset, everything in one go: captions, grounding F1, attention accuracy, error types.

What is measured depends on the kind of model and is found in the registry under ``evaluation``; grounders add their
sections there. Regions come from a store, or are found with the model's own extractor and kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict

from deixis.captioning.answer import Pointing, grounded_captions
from deixis.captioning.model.captioner import Captioner
from deixis.captioning.model.distributed_attention import DistributedAttention
from deixis.captioning.search.strategy import Generated, Strategy
from deixis.data.collate import RegionSource, sizes_of
from deixis.data.dataset import Dataset
from deixis.data.locations import find
from deixis.data.open import open_dataset
from deixis.data.region_cache import regions_of
from deixis.errors import BadFileError, DeixisError, MissingExtraError, TooFewError
from deixis.evaluation.reference_attention import look_at_references
from deixis.evaluation.retrieval import measure_retrieval
from deixis.grounding.base import WordGrounder
from deixis.metrics.captions.java import find_java, jar_folder
from deixis.metrics.captions.scores import score_captions
from deixis.metrics.grounding.attention_accuracy import score_attention
from deixis.metrics.grounding.dataset_words import DatasetWords, words_of_caption, words_of_examples
from deixis.metrics.grounding.object_words import AnnotatedAttention, GroundedItem
from deixis.metrics.report import Report, Section
from deixis.metrics.sections import attention_section, caption_section, grounding_section
from deixis.models.names import LoadedModel
from deixis.models.registry import find_class
from deixis.regions.extraction.tasks import Settings
from deixis.regions.store.reader import EVERYDAY, RegionStore
from deixis.types import ClipSegment, Example, GroundedCaption
from deixis.video import sample_times


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """How to measure; the fields are the options of ``deixis evaluate``."""

    split: str | None = None
    """None: ``test``, drawn where the dataset has no splits; else the only split there is."""
    store: str | None = None
    reader: str | None = None
    classes: Path | None = None
    limit: int | None = None
    strategy: Strategy = field(default_factory=Strategy)
    pointing: Pointing = field(default_factory=Pointing)
    metrics: tuple[str, ...] = ("bleu", "rouge", "cider")
    replicates: int = 1000
    seed: int = 0
    batch: int = 64
    device: str = "cpu"
    retrieval: int = 0
    """Photos among which a grounder has to find the right one for a caption, and the other way round; 0 for none."""


class Drawing(TypedDict):
    """How intervals are drawn, as the sections take it."""

    replicates: int
    seed: int


@dataclass(slots=True)
class Evaluation:
    """A model, the images to measure it on with their regions, and what came out so far."""

    loaded: LoadedModel
    dataset: Dataset
    examples: tuple[Example, ...]
    source: RegionSource
    options: EvaluationOptions
    sections: list[Section] = field(default_factory=list)
    captions: list[GroundedCaption] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds per image of each part."""
    repoint: Callable[[Sequence[GroundedCaption]], list[GroundedCaption]] | None = None
    """What gives the words of generated captions other boxes, such as a grounder's."""
    choose: Callable[[Generated, Sequence[str]], Generated] | None = None
    """What ranks the captions of a beam anew; it is told the images' names."""

    @property
    def drawing(self) -> Drawing:
        """How intervals are drawn."""
        return Drawing(replicates=self.options.replicates, seed=self.options.seed)

    def report(self) -> Report:
        """Return everything as a report."""
        times = [f"{name}: {1000 * value:.0f} ms per image" for name, value in self.seconds.items()]
        return Report(
            submission=f"{self.loaded.kind} {self.loaded.name}",
            reference=str(self.dataset.path),
            split=str(self.options.split),
            region_source=self.source.fingerprint,
            sections=tuple(self.sections),
            lemmas="rules for nouns; spaCy for the references where it is installed",
            model=self.loaded.name,
            notes=(*self.notes, *times),
        )


def evaluate(loaded: LoadedModel, dataset: str, options: EvaluationOptions) -> Evaluation:
    """Measure a model on a split of a dataset."""
    work = prepare(loaded, dataset, options)
    measure(work)
    return work


def measure(work: Evaluation) -> None:
    """Measure what the kind of model can do."""
    loaded = work.loaded
    find_class("evaluation", loaded.kind, f"the model {loaded.name}")(work)
    if work.options.retrieval and isinstance(loaded.model, WordGrounder):
        measure_retrieval(work)


def prepare(loaded: LoadedModel, dataset: str, options: EvaluationOptions) -> Evaluation:
    """Open a dataset and find its regions."""
    data = open_dataset(find(dataset, "data"), options.reader)
    asked, options = options.split, replace(options, split=choose_split(data, options.split))
    examples = [example for example in data.examples(options.split) if example.captions]
    if not examples:
        raise TooFewError(f"split '{options.split}' of {data.path} has no image with a caption: nothing to measure on")
    examples = examples[: options.limit]
    store = _regions(loaded, data, examples, options)
    missing = [example for example in examples if example.id not in store]
    work = Evaluation(loaded, data, tuple(examples), _source(loaded, store, examples), options)
    if asked is None and options.split in data.drawn_splits:
        work.notes.append(
            f"{data.path.name} has no splits: measured on the {len(examples)} images drawn as {options.split}, which "
            "training leaves out; --split all takes every image"
        )
    if missing:
        if len(missing) == len(examples):
            raise DeixisError(f"{store.path} holds the regions of none of the {len(examples)} images")
        work.examples = tuple(example for example in examples if example.id in store)
        work.notes.append(f"{len(missing)} images have no regions ({missing[0].id} for one) and were left out")
    return work


def with_model(work: Evaluation, loaded: LoadedModel) -> Evaluation:
    """Return the same images for another model, with nothing measured yet."""
    loaded.config.require(work.source.fingerprint, work.source.stores[0].path)
    source = _source(loaded, work.source.stores[0], work.examples)
    return Evaluation(loaded, work.dataset, work.examples, source, work.options)


def choose_split(data: Dataset, asked: str | None) -> str:
    """Return the split to measure on: the one asked for, else ``test``, else the only one there is.

    Of a dataset without splits it is the ``test`` that is drawn from it, whatever the model: a model that was trained
    on the rest can then be compared with one that was not. Where that is empty, everything is measured on.
    """
    if asked is not None:
        return data.find_split(asked)
    if data.drawn_splits:
        return "test" if data.ids("test") else data.splits[0]
    return data.splits[0] if len(data.splits) == 1 else data.find_split("test")


def _regions(
    loaded: LoadedModel, data: Dataset, examples: Sequence[Example], options: EvaluationOptions
) -> RegionStore:
    """Open the given store, or find the regions with the model's extractor and keep them for the next time."""
    if options.store is not None:
        store = RegionStore.open(find(options.store, "stores"))
        loaded.config.require(store.fingerprint, store.path)
        return store
    loaded.extractor(options.device)
    known = {item: value for item, value in loaded.config.extractor.items() if item in Settings.__dataclass_fields__}
    return regions_of(data, Settings(**known), [example.id for example in examples], device=options.device)


def _source(loaded: LoadedModel, store: RegionStore, examples: Sequence[Example]) -> RegionSource:
    recipe = loaded.config.recipe.data
    fields = [name for name in EVERYDAY if name in store.fields]
    for name, wanted in (("feature_map", recipe.maps), ("word_probs", recipe.word_probs)):
        if wanted and name not in store.fields:
            raise BadFileError(f"the model looks at {name}, which {store.path} does not hold: extract it again")
        fields += [name] if wanted else []
    return RegionSource((store,), recipe.regions, tuple(fields), recipe.whole_image, sizes_of(examples))


def evaluate_captioner(work: Evaluation) -> None:
    """Captions, their grounding, and attention on the references."""
    model = work.loaded.model
    if not isinstance(model, Captioner):
        raise DeixisError(f"{work.loaded.name} is no captioner")
    began = time.perf_counter()
    work.captions = caption_examples(work, model)
    work.seconds["captions"] = (time.perf_counter() - began) / len(work.examples)
    if work.repoint is not None:
        work.captions = work.repoint(work.captions)
    texts = {caption.image: caption.text for caption in work.captions}
    references = {example.id: [caption.text for caption in example.captions] for example in work.examples}
    metrics = work.options.metrics
    if "meteor" not in metrics and _has_meteor():
        metrics = (*metrics, "meteor")
    work.sections.append(caption_section(score_captions(texts, references, metrics), **work.drawing))
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
    evaluate_attention(work, words)


def _has_meteor() -> bool:
    try:
        find_java()
        jar_folder("meteor")
    except MissingExtraError:
        return False
    return True


def caption_examples(work: Evaluation, model: Captioner) -> list[GroundedCaption]:
    """Caption every image of the split."""
    found: list[GroundedCaption] = []
    options = work.options
    branches = isinstance(model.decoder.attention, DistributedAttention)
    for first in range(0, len(work.examples), options.batch):
        examples = work.examples[first : first + options.batch]
        regions = work.source.regions([example.id for example in examples]).to(options.device)
        generated = model.generate(regions, options.strategy)
        if work.choose is not None:
            generated = work.choose(generated, regions.ids)
        answers = grounded_captions(generated, regions, work.loaded.vocabulary, options.pointing, branches=branches)
        placed = zip(answers, examples, strict=True)
        found += [replace(_placed(answer, example), model=work.loaded.name) for answer, example in placed]
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


def attention_on_references(
    work: Evaluation, model: Captioner | WordGrounder, words: DatasetWords
) -> list[AnnotatedAttention]:
    """Feed every reference and see where the model looks at its annotated words (GVD's attention accuracy)."""
    options = work.options
    return look_at_references(
        model,
        work.loaded.vocabulary,
        work.examples,
        words,
        work.source,
        pointing=options.pointing,
        batch=max(1, options.batch // 4),
        device=options.device,
    )


def evaluate_attention(work: Evaluation, words: DatasetWords | None = None) -> None:
    """Add the attention accuracy of the model, captioner or grounder (POS-SCAN, table 1)."""
    model = work.loaded.model
    assert isinstance(model, Captioner | WordGrounder)
    try:
        if words is None:
            words = words_of_examples(work.examples, class_list=work.options.classes)
            work.notes += words.notes
        looked = score_attention(attention_on_references(work, model, words))
    except DeixisError as error:  # a grounder is measured without a parser, and where no phrase names a class
        work.notes.append(f"attention was not scored: {error}")
        return
    photos = not any(isinstance(example.source, ClipSegment) for example in work.examples)
    work.sections.append(attention_section(looked, photos=photos, **work.drawing))
