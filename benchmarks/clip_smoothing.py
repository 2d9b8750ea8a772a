"""What following a thing from frame to frame gives: boxes that are right, and boxes that stay with their thing.

    python benchmarks/clip_smoothing.py MODEL CLIPS STORE [--split val] [--json]

MODEL is anything ``deixis video`` takes, CLIPS a dataset of clips with boxes on every frame
(``deixis data clips --boxes every-frame``), STORE its regions. Each segment is captioned with and without smoothing.
For every generated word of a class that the reference names: in how many of the frames with a true box is it right
(IoU above one half with any of them); and how much do its boxes overlap from one frame to the next.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import torch

import deixis
from deixis.answering.clips import ClipOptions, caption_frames
from deixis.answering.load import Deixis
from deixis.data import open_dataset
from deixis.data.locations import find
from deixis.errors import DeixisError
from deixis.geometry import iou
from deixis.metrics.grounding.dataset_words import DatasetWords, words_of_caption, words_of_examples
from deixis.regions.store.reader import RegionStore
from deixis.types import Box, Example, GroundedCaption, Regions


def frames_of(regions: Regions) -> list[Regions]:
    """Return the regions of a clip frame by frame, each as those of a photo."""
    found = []
    for at in range(regions.frames):
        here = regions.take(regions.frame == at)
        per_frame: dict[str, Any] = {
            name: None if (value := getattr(regions, name)) is None else value[at : at + 1]
            for name in ("global_features", "feature_map")
        }
        found.append(replace(here, frame=torch.zeros(len(here), dtype=torch.long), **per_frame))
    return found


def overlap(box: Box, others: Sequence[Box]) -> float:
    """Return the largest overlap of a box with any of several."""
    return float(iou(torch.tensor([box]), torch.tensor(others)).max())


def judged(example: Example, words: DatasetWords, told: GroundedCaption) -> Iterator[tuple[list[bool], list[float]]]:
    """Yield for each generated object word its hits on annotated frames and its overlaps from frame to frame."""
    for word in words_of_caption(told, words.classes, example.size):
        hits: list[bool] = []
        for reference in words.sentences[example.id]:
            known = reference.first.get(word.label)
            if known is None:
                continue
            for frame, box in zip(word.frames, word.boxes, strict=True):
                truth = [b for b, at in zip(known.boxes, known.frames, strict=True) if at == frame]
                hits += [overlap(box, truth) > 0.5] if truth else []
        yield hits, [overlap(a, [b]) for a, b in pairwise(word.boxes)]


def measure(model: Deixis, examples: Sequence[Example], store: RegionStore, *, smooth: bool) -> dict[str, float]:
    """Return the share of right boxes and the mean overlap of neighbouring ones."""
    words = words_of_examples(examples)
    options = ClipOptions(beam=1, smooth=smooth)
    hits: list[bool] = []
    overlaps: list[float] = []
    for example in examples:
        told = replace(caption_frames(model, frames_of(store.get(example.id)), options), image=example.id)
        for right, near in judged(example, words, told):
            hits += right
            overlaps += near
    if not hits:
        raise DeixisError("not one generated word is named by a reference: there is nothing to measure")
    return {"boxes": len(hits), "right": fmean(hits), "overlap": fmean(overlaps)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Boxes on clips with and without smoothing.")
    parser.add_argument("model")
    parser.add_argument("clips")
    parser.add_argument("store")
    parser.add_argument("--split", default="val")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        model, store = deixis.load(options.model), RegionStore.open(find(options.store, "stores"))
        examples = list(open_dataset(find(options.clips, "data")).examples(options.split))
        found = {
            name: measure(model, examples, store, smooth=smooth)
            for name, smooth in (("each frame alone", False), ("followed", True))
        }
    except DeixisError as error:
        raise SystemExit(f"clip_smoothing: {error}") from error
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for name, row in found.items():
        print(f"{name:18} right {100 * row['right']:.1f} %  overlap {row['overlap']:.2f}  ({row['boxes']:.0f} boxes)")


if __name__ == "__main__":
    main()
