"""A store whose regions are the human boxes of a dataset: the perfect detector of Cyclical, section 4.4.

It shows what captioning and pointing could reach if regions were found without fault. It looks at human boxes, so the
store says ``supervision``, and a recipe that does not say so too cannot train on it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from deixis.atomic import utf8
from deixis.data.collate import Labeller
from deixis.data.dataset import Dataset
from deixis.data.parses import object_labels, with_parses
from deixis.errors import BadFileError, DeixisError
from deixis.images import load_image
from deixis.regions.lite import LiteExtractor, load_lite
from deixis.regions.perfect_detector import FINGERPRINT, perfect_regions
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import write_store
from deixis.text.vocabulary import Vocabulary
from deixis.types import ClipSegment, Example, Regions

Features = Literal["classes", "lite"]
FRAMES = 10
"""Frames of a clip segment that datasets annotate."""


def write_truth_store(
    dataset: Dataset, path: Path, classes: str, *, split: str | None = None, features: Features = "classes"
) -> RegionStore:
    """Write the store of a dataset's human boxes.

    Args:
        dataset: Photos or clips with boxes on their phrases.
        path: Folder of the store.
        classes: File with the object classes, one a line; boxes of other phrases are left out.
        split: Only this split; all of them if None.
        features: What is known of a region: its ``classes`` alone, from which a captioner with ``encoder.feature:
            class`` learns an embedding each (the paper's), or beside them its ``lite`` feature, which separates the
            question where regions are from the question what they look like. Photos only.
    """
    examples = with_parses([example for example in dataset.examples(split) if example.captions])
    vocabulary = Vocabulary.build((caption for example in examples for caption in example.captions), 1)
    names, label = object_labels(classes, vocabulary)
    assert label is not None  # as classes are given
    if not any(phrase.boxes for example in examples for caption in example.captions for phrase in caption.phrases):
        raise DeixisError(f"{dataset.path} has no human boxes{f' in split {split}' if split else ''}")
    extractor = load_lite() if features == "lite" else None
    mark = hashlib.sha256(utf8("\n".join(names))).hexdigest()[:12]
    parts = [FINGERPRINT, mark, *([extractor.fingerprint] if extractor else [])]
    fingerprint = "-".join(parts)
    unique = {example.id: example for example in examples}

    def every() -> Iterator[tuple[str, Regions | str]]:
        for name in sorted(unique):
            try:
                yield name, replace(_regions(unique[name], label, names, extractor), fingerprint=fingerprint)
            except BadFileError as error:
                yield name, str(error)

    settings = {"extractor": "truth", "supervision": True, "features": features, "classes": len(names)}
    return write_store(path, every(), sorted(unique), fingerprint, settings)


def _regions(example: Example, label: Labeller, names: tuple[str, ...], extractor: LiteExtractor | None) -> Regions:
    clip = isinstance(example.source, ClipSegment)
    perfect = perfect_regions(example, label, names, frames=FRAMES if clip else 1)
    if extractor is None:
        return perfect
    if isinstance(example.source, ClipSegment):
        raise DeixisError(f"{example.id} is a clip: lite features of human boxes can be had for photos only")
    described = extractor.describe(np.asarray(load_image(example.source)), perfect.boxes[:-1])
    return replace(perfect, features=described.features, global_features=described.global_features)
