"""What guessing reaches in attention accuracy on clips: a yardstick for every attention measured there.

    python benchmarks/clip_chance.py CLIPS STORE [--split val] [--draws 5]

CLIPS is a dataset in ActivityNet-Entities form, STORE its regions. A word counts as found if one of its annotated
frames is right, so clips with boxes in many frames are kind to guessers.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

import torch

from deixis.data import Dataset, open_dataset
from deixis.metrics.attention_accuracy import score_attention
from deixis.metrics.object_words import AnnotatedAttention, PredictedWord, ReferenceSentence
from deixis.regions.store import RegionStore
from deixis.types import Box, Example, Regions


def guess(example: Example, regions: Regions, choose: Callable[[Sequence[int]], int]) -> AnnotatedAttention:
    caption = example.captions[0]
    boxes = [
        (phrase.last - 1 if phrase.head is None else phrase.head, phrase.label or "thing", box, frame)
        for phrase in caption.phrases
        for box, frame in zip(phrase.boxes, phrase.frames, strict=True)
    ]
    reference = ReferenceSentence.of(boxes)
    looked = {}
    for word in reference.words:
        chosen: list[Box] = []
        for frame in range(regions.frames):
            x1, y1, x2, y2 = regions.boxes[choose(torch.nonzero(regions.frame == frame).flatten().tolist())].tolist()
            chosen.append((x1, y1, x2, y2))
        looked[word.index] = PredictedWord(
            word.label, word.label, tuple(chosen), tuple(range(regions.frames)), word.index
        )
    return AnnotatedAttention(example.id, reference, looked, example.id)


def accuracy(dataset: Dataset, store: RegionStore, split: str, choose: Callable[[Sequence[int]], int]) -> float:
    return score_attention([guess(e, store.get(e.id), choose) for e in dataset.examples(split)]).accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description="Attention accuracy of guesses on clips.")
    parser.add_argument("clips", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--split", default="val")
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    dataset, store, rng = open_dataset(options.clips), RegionStore.open(options.store), random.Random(0)
    drawn = [accuracy(dataset, store, options.split, rng.choice) for _ in range(options.draws)]
    print(f"a region at random in each frame  {mean(drawn):.3f}")
    print(f"the best-scored region            {accuracy(dataset, store, options.split, lambda rows: rows[0]):.3f}")
    print(f"the whole frame                   {accuracy(dataset, store, options.split, lambda rows: rows[-1]):.3f}")


if __name__ == "__main__":
    main()
