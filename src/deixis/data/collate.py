"""From examples and stored regions to batches: the one place where captions become numbers, and are cut and padded.

Captions are turned into numbers once (:func:`encode_example`); a batch then only copies. Words are lower case without
punctuation; phrases, which the readers give as token spans, become spans of word positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from deixis.data.batch import Batch, PhraseBatch, PhraseBoxes, RegionBatch, RelationBatch
from deixis.data.encode import CaptionEncoder as CaptionEncoder
from deixis.data.encode import EncodedCaption as EncodedCaption
from deixis.data.encode import EncodedPhrase as EncodedPhrase
from deixis.data.encode import Labeller as Labeller
from deixis.errors import BadFileError, DeixisError
from deixis.regions.store.reader import EVERYDAY, RegionStore
from deixis.types import Example, Regions


@dataclass(frozen=True, slots=True)
class EncodedExample:
    """An image's id, its captions as numbers, and their texts."""

    id: str
    captions: tuple[EncodedCaption, ...]
    references: tuple[str, ...]


def sizes_of(examples: Iterable[Example]) -> dict[str, tuple[int, int]]:
    """Return the sizes in whose pixels the boxes of examples are given, for :class:`RegionSource`."""
    return {example.id: example.size for example in examples if example.size is not None}


def encode_example(example: Example, encoder: CaptionEncoder) -> EncodedExample:
    """Encode all captions of an image."""
    return EncodedExample(
        example.id,
        tuple(encoder(sentence) for sentence in example.captions),
        tuple(sentence.text for sentence in example.captions),
    )


def fields_to_read(store: RegionStore, *, maps: bool, word_probs: bool) -> tuple[str, ...]:
    """Return which fields of a store a model is fed; what it asks for beside the everyday ones must be there."""
    fields = tuple(name for name in EVERYDAY if name in store.fields)
    for name, wanted in (("feature_map", maps), ("word_probs", word_probs)):
        if wanted and name not in store.fields:
            raise BadFileError(f"the model looks at {name}, which {store.path} does not hold: extract it again")
        fields += (name,) if wanted else ()
    return fields


@dataclass(frozen=True, slots=True)
class RegionSource:
    """Several stores of one extractor as one: the regions of an image come from the store that has it."""

    stores: tuple[RegionStore, ...]
    max_regions: int | None = None
    fields: tuple[str, ...] | None = None
    whole: bool = True
    """Whether the whole frame is a region too."""
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The size in whose pixels people drew the boxes of an image. Regions come in these pixels, so that everything that
    compares them with human boxes (targets, attention accuracy, evaluation, calibration) compares like with like."""

    def __post_init__(self) -> None:
        for store in self.stores[1:]:
            store.require(self.stores[0].fingerprint)

    @property
    def fingerprint(self) -> str:
        """The extractor of all regions."""
        return self.stores[0].fingerprint

    def __contains__(self, image: str) -> bool:
        return any(image in store for store in self.stores)

    def regions(self, images: Sequence[str]) -> RegionBatch:
        """Return the padded regions of images, in their order."""
        if len(self.stores) == 1:
            return RegionBatch(tuple(images), **self._read(self.stores[0], images))
        home = [next((at for at, s in enumerate(self.stores) if image in s), 0) for image in images]
        if len(set(home)) == 1:
            return RegionBatch(tuple(images), **self._read(self.stores[home[0]], images))
        parts, order = [], []
        for at, store in enumerate(self.stores):
            rows = [row for row, store_of in enumerate(home) if store_of == at]
            if rows:
                parts.append(self._read(store, [images[row] for row in rows]))
                order += rows
        back = torch.tensor(order).argsort()
        return RegionBatch(tuple(images), **{name: _join([p[name] for p in parts])[back] for name in parts[0]})

    def _read(self, store: RegionStore, images: Sequence[str]) -> dict[str, Tensor]:
        return store.batch(images, self.fields, max_regions=self.max_regions, whole=self.whole, sizes=self.sizes)

    def get(self, image: str) -> Regions:
        """Return the regions of one image as a model is asked about them."""
        store = next((store for store in self.stores if image in store), self.stores[0])
        regions = store.get(image, self.fields, size=self.sizes.get(image))
        return (
            regions
            if self.max_regions is None and self.whole
            else regions.top(len(regions) if self.max_regions is None else self.max_regions, whole=self.whole)
        )


def _join(parts: Sequence[Tensor]) -> Tensor:
    """Concatenate padded tensors, padding the second axis to the longest."""
    if parts[0].dim() == 1 or len({part.shape[1:] for part in parts}) == 1:
        return torch.cat(list(parts))
    longest = max(part.shape[1] for part in parts)
    padded = [part.new_zeros(len(part), longest, *part.shape[2:]) for part in parts]
    for out, part in zip(padded, parts, strict=True):
        out[:, : part.shape[1]] = part
    return torch.cat(padded)


def collate(
    examples: Sequence[EncodedExample],
    regions: RegionBatch,
    chosen: Sequence[Sequence[int]] | None = None,
    *,
    supervision: bool = False,
) -> Batch:
    """Return the batch of some images with all their captions, or those ``chosen`` per image.

    >>> batch = collate(examples, source.regions([example.id for example in examples]))  # doctest: +SKIP
    """
    chosen = chosen if chosen is not None else [range(len(example.captions)) for example in examples]
    pairs = [(row, number) for row, numbers in enumerate(chosen) for number in numbers]
    captions = [examples[row].captions[number] for row, number in pairs]
    if not captions:
        raise DeixisError(f"none of the images {', '.join(example.id for example in examples[:3])} … has a caption")
    longest = max(len(caption.words) for caption in captions)
    words = torch.zeros(len(captions), longest, dtype=torch.long)
    tags = torch.zeros(len(captions), longest, dtype=torch.long)
    flat_words, flat_tags = words.numpy(), tags.numpy()
    for row, caption in enumerate(captions):
        flat_words[row, : len(caption.words)] = caption.words
        flat_tags[row, : len(caption.tags)] = caption.tags
    phrases = [(row, phrase) for row, caption in enumerate(captions) for phrase in caption.phrases]
    return Batch(
        regions=regions,
        words=words,
        image_of=torch.tensor([row for row, _ in pairs]),
        tags=tags,
        phrases=_phrases(phrases),
        relations=_relations(captions),
        phrase_boxes=_boxes([phrase for _, phrase in phrases]) if supervision else None,
        references=tuple(example.references for example in examples),
        caption_ids=tuple(f"{examples[row].id}#{number}" for row, number in pairs),
    )


def _phrases(phrases: Sequence[tuple[int, EncodedPhrase]]) -> PhraseBatch:
    rows = torch.tensor([(row, p.first, p.last, p.head) for row, p in phrases], dtype=torch.long).reshape(-1, 4)
    return PhraseBatch(*rows.unbind(1))


def _relations(captions: Sequence[EncodedCaption]) -> RelationBatch:
    rows: list[tuple[int, int, int]] = []
    before = 0
    for caption in captions:
        rows += [(before + subject, predicate, before + object_) for subject, predicate, object_ in caption.relations]
        before += len(caption.phrases)
    return RelationBatch(*torch.tensor(rows, dtype=torch.long).reshape(-1, 3).unbind(1))


def _boxes(phrases: Sequence[EncodedPhrase]) -> PhraseBoxes:
    most = max((len(phrase.boxes) for phrase in phrases), default=0)
    boxes = torch.zeros(len(phrases), most, 4)
    frame = torch.zeros(len(phrases), most, dtype=torch.long)
    for row, phrase in enumerate(phrases):
        if phrase.boxes:
            boxes[row, : len(phrase.boxes)] = torch.tensor(phrase.boxes, dtype=torch.float32)
            frame[row, : len(phrase.boxes)] = torch.tensor(phrase.frames)
    counts = torch.tensor([len(phrase.boxes) for phrase in phrases], dtype=torch.long)
    mask = torch.arange(most) < counts[:, None]  # (P, M)
    return PhraseBoxes(boxes, mask, frame, torch.tensor([phrase.label for phrase in phrases], dtype=torch.long))
