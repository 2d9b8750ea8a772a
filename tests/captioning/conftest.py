"""Small captioners and batches, and the textbook version of the same model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch

import deixis.captioning.model.textbook
from deixis.captioning import Captioner, CaptionerConfig, InputSizes
from deixis.data.batch import Batch, PhraseBatch, PhraseBoxes, RegionBatch
from deixis.text.vocabulary import Entry, Vocabulary

FEATURES, WORDS, CLASSES, CELLS = 12, 24, 6, 8
SIZES = InputSizes(
    words=WORDS, features=FEATURES, classes=CLASSES, region_words=5, global_features=9, feature_map=CELLS
)

NOUNS = ["man", "dog", "ball", "street", "hat"]
TEXT = [
    "a",
    "the",
    "on",
    "with",
    *NOUNS,
    "runs",
    "jumps",
    "holds",
    "red",
    "big",
    "blue",
    "and",
    "is",
    "of",
    "in",
    "his",
]


def _regions(images: int = 3, count: int = 7, frames: int = 1, seed: int = 0) -> RegionBatch:
    """Random regions; the second image has two fewer than the others."""
    source = torch.Generator().manual_seed(seed)

    def rand(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=source)

    corner = rand(images, count, 2) * 60
    mask = torch.ones(images, count, dtype=torch.bool)
    if images > 1:
        mask[1, -2:] = False
    return RegionBatch(
        ids=tuple(f"image{at}" for at in range(images)),
        features=rand(images, count, FEATURES) - 0.5,
        boxes=torch.cat([corner, corner + 5 + rand(images, count, 2) * 30], -1),
        mask=mask,
        sizes=torch.tensor([[100.0, 120.0]]).repeat(images, 1),
        objectness=rand(images, count),
        frame=(torch.arange(count) % frames).repeat(images, 1),
        regionness=rand(images, count),
        class_probs=rand(images, count, CLASSES).softmax(-1),
        word_probs=rand(images, count, 5),
        global_features=rand(images, frames, 9) - 0.5,
        frame_mask=torch.ones(images, frames, dtype=torch.bool),
        feature_map=rand(images, frames, 2, 2, CELLS) - 0.5,
    )


def _batch(regions: RegionBatch, each: int = 2, steps: int = 6, seed: int = 1, words: int = WORDS) -> Batch:
    """Captions of 3 to ``steps`` words with their end tokens, and random kinds."""
    source = torch.Generator().manual_seed(seed)
    captions = len(regions) * each
    said = torch.randint(4, words, (captions, steps), generator=source)
    ends = torch.randint(2, steps, (captions,), generator=source)
    ends[0] = steps - 1
    at = torch.arange(steps)
    said = torch.where(at == ends[:, None], 2, torch.where(at < ends[:, None], said, 0))
    tags = torch.randint(0, 4, said.shape, generator=source) * (said > 3)
    return Batch(regions, said, torch.arange(len(regions)).repeat_interleave(each), tags)


def _with_boxes(batch: Batch) -> Batch:
    """The first word of every caption is annotated with the box of a region of its image, moved a little."""
    captions = len(batch)
    region = torch.arange(captions) % 4
    boxes = batch.regions.boxes[batch.image_of, region].unsqueeze(1) + 0.5
    zero = torch.zeros(captions, dtype=torch.long)
    return replace(
        batch,
        phrases=PhraseBatch(torch.arange(captions), zero, zero + 1, zero),
        phrase_boxes=PhraseBoxes(
            boxes,
            torch.ones(captions, 1, dtype=torch.bool),
            batch.regions.frame[batch.image_of, region].unsqueeze(1),
            torch.arange(captions) % CLASSES,
        ),
    )


@pytest.fixture
def make_regions() -> Callable[..., RegionBatch]:
    return _regions


@pytest.fixture
def make_batch() -> Callable[..., Batch]:
    return _batch


@pytest.fixture
def with_boxes() -> Callable[[Batch], Batch]:
    return _with_boxes


@pytest.fixture
def regions() -> RegionBatch:
    return _regions()


@pytest.fixture
def batch(regions: RegionBatch) -> Batch:
    return _batch(regions)


@pytest.fixture
def make_captioner() -> Callable[..., Captioner]:
    def make(seed: int = 0, sizes: InputSizes = SIZES, **options: Any) -> Captioner:
        torch.manual_seed(seed)
        return Captioner(CaptionerConfig(**{"width": 16, **options}), sizes).eval()

    return make


@pytest.fixture
def vocabulary() -> Vocabulary:
    tags = dict.fromkeys(NOUNS, "NN") | {"runs": "VBZ", "jumps": "VBZ", "holds": "VBZ", "is": "VBZ"}
    tags |= {"red": "JJ", "big": "JJ", "blue": "JJ", "a": "DT", "the": "DT", "and": "CC", "his": "PRP$"}
    assert len(TEXT) == WORDS - 4
    return Vocabulary([Entry(word, 9, tags.get(word, "IN"), word, word in NOUNS) for word in TEXT])


@pytest.fixture(scope="session")
def textbook() -> ModuleType:
    return deixis.captioning.model.textbook
