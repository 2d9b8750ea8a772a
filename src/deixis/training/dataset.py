"""What a run trains on: the examples of a recipe's sources as numbers, their regions, and the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deixis.data.batch import Batch
from deixis.data.collate import (
    CaptionEncoder,
    EncodedExample,
    Labeller,
    RegionSource,
    collate,
    encode_example,
    fields_to_read,
    sizes_of,
)
from deixis.data.dataset import Dataset
from deixis.data.locations import find
from deixis.data.no_regions import NAME as NO_STORE
from deixis.data.no_regions import NoRegions
from deixis.data.open import open_dataset
from deixis.data.parses import object_labels, with_parses
from deixis.data.region_cache import AUTO, regions_of
from deixis.data.sampler import choose_captions
from deixis.errors import BadFileError, DeixisError
from deixis.regions.extraction.tasks import Settings
from deixis.regions.store.reader import RegionStore
from deixis.text.relations import RelationVocabulary
from deixis.text.vocabulary import Vocabulary
from deixis.training.recipe import DataRecipe, Source
from deixis.types import Example


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """Encoded images with captions, from which batches are cut by number."""

    examples: tuple[EncodedExample, ...]
    source: RegionSource
    captions: int
    """Captions per image and epoch."""
    supervision: bool
    seed: int
    word_counts: NDArray[np.int64]  # (images,) words and end tokens of all captions

    def __len__(self) -> int:
        return len(self.examples)

    def batch(self, rows: Sequence[int] | NDArray[np.int64], epoch: int | None = None) -> Batch:
        """Return the batch of some images; with an epoch, at most ``captions`` captions of each."""
        examples = [self.examples[row] for row in rows]
        chosen: list[Sequence[int]] | None = None
        if epoch is not None:
            chosen = [
                choose_captions(len(example.captions), self.captions, seed=self.seed, epoch=epoch, image=int(row))
                for row, example in zip(rows, examples, strict=True)
            ]
        regions = self.source.regions([example.id for example in examples])
        return collate(examples, regions, chosen, supervision=self.supervision)


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Training and validation images of one run, and what a model must know of them."""

    train: ExampleSet
    validation: ExampleSet | None
    validation_examples: tuple[Example, ...]
    """The validation images with their annotations, for metrics that look at boxes."""
    vocabulary: Vocabulary
    classes: tuple[str, ...]
    relations: RelationVocabulary
    annotated: ExampleSet | None = None
    """The validation images with their human boxes, where there are any: to measure with, never to train on."""

    @property
    def store(self) -> RegionStore:
        """A store with the extractor's facts."""
        return self.train.source.stores[0]


def load_data(recipe: DataRecipe, seed: int, settings: Settings = Settings()) -> TrainingData:  # noqa: B008 - frozen
    """Read everything a recipe's ``data`` names; ``settings`` say how regions are found where it says ``auto``."""
    sources = [Source(recipe.dataset, recipe.store, recipe.train, recipe.reader, recipe.limit), *recipe.more]
    examples: list[Example] = []
    stores: list[RegionStore] = []
    for source in sources:
        store, found = read_source(source, tagged=recipe.parse, settings=settings)
        examples += found
        if store.path not in [known.path for known in stores]:
            stores.append(store)
    for store in stores:
        if store.header.settings.get("supervision") and not recipe.supervision:
            raise DeixisError(
                f"the regions of {store.path} are human boxes: only recipes with data.supervision: true may use them"
            )
    if recipe.supervision and not _has_boxes(examples):
        raise DeixisError(
            f"no phrase of {recipe.dataset} {recipe.train} has a box to learn from: set data.supervision to false, or "
            "name a dataset with boxes in data.dataset"
        )
    vocabulary = (
        Vocabulary.load(find(recipe.vocabulary, "data"))
        if recipe.vocabulary
        else Vocabulary.build((caption for example in examples for caption in example.captions), recipe.min_count)
    )
    if recipe.vocabulary and recipe.new_words:
        vocabulary = vocabulary.grown(
            (caption for example in examples for caption in example.captions), recipe.new_words
        )
    if not vocabulary.entries:
        raise DeixisError(f"no word is seen {recipe.min_count} times in {len(examples)} images: lower data.min_count")
    classes, label = object_labels(recipe.classes, vocabulary)
    relations = RelationVocabulary.build(caption for example in examples for caption in example.captions)
    train = example_set(examples, stores, recipe, vocabulary, seed, label, relations)
    validation: ExampleSet | None = None
    annotated: ExampleSet | None = None
    held_out: list[Example] = []
    if recipe.validation is not None:
        place = recipe.validation_from or Source(
            recipe.dataset, recipe.store, recipe.validation, recipe.reader, recipe.limit
        )
        store, held_out = read_source(place, tagged=recipe.parse, settings=settings)
        validation = example_set(held_out, [store], recipe, vocabulary, seed, label, relations)
        if _has_boxes(held_out):
            boxed = replace(recipe, supervision=True)
            annotated = example_set(held_out, [store], boxed, vocabulary, seed, label, relations)
    return TrainingData(train, validation, tuple(held_out), vocabulary, classes, relations, annotated)


def _has_boxes(examples: Sequence[Example]) -> bool:
    return any(phrase.boxes for example in examples for caption in example.captions for phrase in caption.phrases)


def dataset_of(source: Source, key: str = "data.dataset") -> Dataset:
    """Open a source's dataset; ``key`` is where a recipe names it, for messages."""
    try:
        place = find(source.dataset, "data")
    except BadFileError as error:
        raise BadFileError(f"{error}; name yours: {key}=YOUR_FOLDER") from error
    return open_dataset(place, source.reader)


def read_source(
    source: Source,
    *,
    tagged: bool,
    settings: Settings = Settings(),  # noqa: B008 - frozen
) -> tuple[RegionStore, list[Example]]:
    """Open a source's store and read its examples; images the extractor could not read are left out."""
    dataset = dataset_of(source)
    if source.store == AUTO:
        store = regions_of(dataset, settings)
    else:
        store = NoRegions() if source.store == NO_STORE else RegionStore.open(find(source.store, "stores"))
    failed = {entry["id"] for entry in store.header.failed}
    found: list[Example] = []
    for split in source.split.split("+"):
        for example in dataset.examples(split):
            if source.limit is not None and len(found) == source.limit:
                break
            if example.captions and example.id not in failed:
                found.append(example)
    if not found:
        few = " (too few photos to draw splits from: give them a column `split`, or set data.validation=null)"
        raise DeixisError(
            f"split '{source.split}' of {dataset.path} has no image with a caption: nothing to learn from"
            f"{few if source.split in dataset.drawn_splits else ''}"
        )
    missing = [example.id for example in found if example.id not in store]
    if missing:
        raise DeixisError(
            f"{store.path} lacks the regions of {len(missing)} of {len(found)} images of {dataset.path} "
            f"({missing[0]} for one): run `deixis regions extract {dataset.path} -o {store.path}`"
        )
    return store, with_parses(found) if tagged else found


def example_set(
    examples: Sequence[Example],
    stores: Sequence[RegionStore],
    recipe: DataRecipe,
    vocabulary: Vocabulary,
    seed: int,
    label: Labeller | None = None,
    relations: RelationVocabulary | None = None,
) -> ExampleSet:
    """Encode examples for a model with this vocabulary."""
    encoder = CaptionEncoder(vocabulary, recipe.length, relations, supervision=recipe.supervision, label=label)
    encoded = tuple(encode_example(example, encoder) for example in examples)
    counts = np.array([sum(len(caption.words) for caption in example.captions) for example in encoded])
    fields = fields_to_read(stores[0], maps=recipe.maps, word_probs=recipe.word_probs)
    source = RegionSource(tuple(stores), recipe.regions, fields, recipe.whole_image, sizes_of(examples))
    return ExampleSet(encoded, source, recipe.captions, recipe.supervision, seed, counts)
