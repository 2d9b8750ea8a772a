"""An exported model beside the model itself: are sentences and boxes the same, and what does an answer cost?

    deixis export-model lite -o lite-onnx
    python -m benchmarks.portable lite-onnx PHOTOS [--model lite] [--limit 200]

Prints how many captions are equal, the largest distance between boxes in pixels, and the time of onnxruntime as a share
of torch's. Both run on one thread, photo by photo in turn, so that a busy machine is equally unfair to both.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import deixis
from deixis.answering.photos import find_photos
from deixis.portable.runner import Portable
from deixis.regions.lite import LiteExtractor
from deixis.types import GroundedCaption


def distance(one: GroundedCaption, other: GroundedCaption) -> float:
    """Return how far the boxes of two captions of the same words lie apart, infinitely where their number differs."""
    most = 0.0
    for word, same in zip(one.words, other.words, strict=True):
        if len(word.boxes) != len(same.boxes):
            return float("inf")
        if word.boxes:
            most = max(most, float(np.abs(np.array(word.boxes) - np.array(same.boxes)).max()))
    return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("photos", nargs="+")
    parser.add_argument("--model", default="lite")
    parser.add_argument("--limit", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    ours, theirs = Portable.load(options.folder, threads=1), deixis.load(options.model)
    if isinstance(theirs.extractor, LiteExtractor):
        theirs.extractor.computing_in("float32")  # as the files compute; torch's default is eight bits
    equal, doubts, seconds = 0, 0, [0.0, 0.0]
    apart: list[float] = []
    photos = find_photos(options.photos)[: options.limit]
    for photo in photos:
        start = time.perf_counter()
        mine = ours.caption(photo)
        middle = time.perf_counter()
        other = theirs.caption(photo, check=True)
        seconds[0] += middle - start
        seconds[1] += time.perf_counter() - middle
        if mine.text != other.text:
            print(f"{photo}: {mine.text!r}, torch {other.text!r}")
            continue
        equal += 1
        apart.append(distance(mine, other))
        doubts += [word.trusted for word in mine.words] == [word.trusted for word in other.words]
    print(f"sentences equal: {equal} of {len(photos)}; the same words doubted in {doubts} of them")
    print(f"boxes of those: {sum(one < 1 for one in apart)} within a pixel, at most {max(apart, default=0):.4f} apart")
    print(f"time: {seconds[0] / seconds[1]:.2f} of torch's")


if __name__ == "__main__":
    main()
