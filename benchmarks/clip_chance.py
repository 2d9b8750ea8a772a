"""What guessing reaches in attention accuracy on clips: a yardstick for every attention measured there.

    python benchmarks/clip_chance.py CLIPS STORE [--split val] [--draws 5] [--model CHECKPOINT]

CLIPS is a dataset in ActivityNet-Entities form, STORE its regions. A word counts as found if one of its annotated
frames is right, so clips with boxes in many frames are kind to guessers. With --model (a checkpoint folder of a run)
every annotated frame is also judged on its own, for the captioner and for guesses: there ten tries do not help.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

import torch

from deixis.captioning import Captioner
from deixis.data import Dataset, open_dataset
from deixis.data.collate import CaptionEncoder, RegionSource, collate, encode_example
from deixis.geometry import iou
from deixis.metrics.attention_accuracy import score_attention
from deixis.metrics.object_words import AnnotatedAttention, PredictedWord, ReferenceSentence
from deixis.regions.store import RegionStore
from deixis.training.stage import load_model
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


@torch.no_grad()
def by_frame(dataset: Dataset, store: RegionStore, split: str, checkpoint: Path) -> dict[str, float]:
    """Return which share of the annotated frames each way of pointing gets right."""
    model, vocabulary, config = load_model(checkpoint)
    assert isinstance(model, Captioner)
    encoder = CaptionEncoder(vocabulary, config.recipe.data.length, supervision=True)
    source = RegionSource((store,), config.recipe.data.regions)
    right = {"the captioner's attention": 0.0, "a region at random": 0.0, "the best-scored region": 0.0}
    frames = 0
    for example in dataset.examples(split):
        batch = collate([encode_example(example, encoder)], source.regions([example.id]), supervision=True)
        attention = model.decode(model.encode(batch.regions), batch.words, batch.image_of).attention.mean(0)[
            0
        ]  # (T, N)
        assert batch.phrases is not None
        assert batch.phrase_boxes is not None
        for phrase, head in enumerate(batch.phrases.head.tolist()):
            real = batch.phrase_boxes.mask[phrase]
            boxes, frame = batch.phrase_boxes.boxes[phrase][real], batch.phrase_boxes.frame[phrase][real]
            for at in sorted(set(frame.tolist())):
                rows = torch.nonzero((batch.regions.frame[0] == at) & batch.regions.mask[0]).flatten()
                hits = (iou(batch.regions.boxes[0][rows], boxes[frame == at]).amax(1) > 0.5).float()  # (n,)
                right["the captioner's attention"] += float(hits[attention[head, rows].argmax()])
                right["a region at random"] += float(hits.mean())
                right["the best-scored region"] += float(hits[0])
                frames += 1
    return {name: value / frames for name, value in right.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Attention accuracy of guesses on clips.")
    parser.add_argument("clips", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--split", default="val")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--model", type=Path)
    options = parser.parse_args()
    dataset, store, rng = open_dataset(options.clips), RegionStore.open(options.store), random.Random(0)
    drawn = [accuracy(dataset, store, options.split, rng.choice) for _ in range(options.draws)]
    print(f"a region at random in each frame  {mean(drawn):.3f}")
    print(f"the best-scored region            {accuracy(dataset, store, options.split, lambda rows: rows[0]):.3f}")
    print(f"the whole frame                   {accuracy(dataset, store, options.split, lambda rows: rows[-1]):.3f}")
    if options.model is not None:
        print("\neach annotated frame on its own")
        for name, value in by_frame(dataset, store, options.split, options.model).items():
            print(f"{name:33} {value:.3f}")


if __name__ == "__main__":
    main()
