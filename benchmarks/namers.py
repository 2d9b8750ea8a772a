"""Whose features name things best? Frozen networks, pooled in annotated boxes, and a linear probe of the head noun.

    python -m benchmarks.namers DATA WEIGHTS [--photos 800] [--json]

DATA is in the layout of Flickr30k Entities, WEIGHTS the folder of published weights (docs/reports/lite-extractor.md).
The probe learns on the boxes of so many training photos and is asked about those of val: human boxes measure here, they
never train the extractor. DINOv2 looks at as many patches as its name says; "with lite" adds the shipped extractor's
own features.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from benchmarks.regions_words import probe
from deixis.data.open import open_dataset
from deixis.images import load_image
from deixis.regions.lite import LiteExtractor
from deixis.regions.network.resize import fit
from deixis.regions.network.roi import roi_align
from deixis.regions.network.trunks.dinov2 import PATCH
from deixis.regions.network.trunks.published import dinov2, tinyvit
from deixis.text.caption_words import load_tagger, nouns_and_adjectives
from deixis.types import Example, ImageFile

PATCHES = (190, 260, 420)


@dataclass(frozen=True, slots=True)
class Named:
    """The annotated boxes of one photo: features of every kind, and the head noun of each."""

    annotated: dict[str, Tensor]  # (P, D) each
    nouns: list[str | None]


class Looker:
    """Runs all networks over photos."""

    def __init__(self, weights: Path) -> None:
        self.dino, self.tiny = dinov2(weights).eval(), tinyvit(weights).eval()
        self.lite, self.tagger = LiteExtractor.load(), load_tagger()
        self.words = set(self.lite.words)

    @torch.inference_mode()
    def look(self, example: Example) -> Named | None:
        """Describe the boxed phrases of a photo; None if it has none."""
        assert isinstance(example.source, ImageFile)
        phrases = [(s.phrase_text(p), p.boxes[0]) for s in example.captions for p in s.phrases if p.boxes]
        if not phrases:
            return None
        found = nouns_and_adjectives([text for text, _ in phrases], self.tagger)
        nouns = [next((word for word in reversed(words) if word in self.words), None) for words in found]
        pixels, boxes = np.asarray(load_image(example.source)), torch.tensor([box for _, box in phrases])
        features = self._published(pixels, boxes)
        fitted = fit(pixels)
        batch = _batch(fitted).contiguous(memory_format=torch.channels_last)
        scaled, rows = boxes * _scale(fitted, pixels), torch.zeros(len(boxes), dtype=torch.long)
        features["TinyViT"] = roi_align(self.tiny(batch)[2], scaled, rows, 1 / 32, 1, 4).flatten(1)
        head = self.lite.network.regions
        features["lite"] = head.describe(head.pool(self.lite.network(batch), scaled, rows))
        for patches in PATCHES:
            features[f"DINOv2 {patches} with lite"] = torch.cat([features["lite"], features[f"DINOv2 {patches}"]], 1)
        return Named(features, nouns)

    def _published(self, pixels: NDArray[np.uint8], boxes: Tensor) -> dict[str, Tensor]:
        """Pool DINOv2's tokens at several sizes of the photo."""
        height, width = pixels.shape[:2]
        features = {}
        for patches in PATCHES:
            scale = math.sqrt(patches / (width * height))
            sides = round(width * scale) * PATCH, round(height * scale) * PATCH
            small = np.asarray(Image.fromarray(pixels).resize(sides, Image.Resampling.BILINEAR, reducing_gap=3.0))
            tokens = self.dino(_batch(small))[1]
            rows = torch.zeros(len(boxes), dtype=torch.long)
            pooled = roi_align(tokens, boxes * _scale(small, pixels), rows, 1 / PATCH, 1, 4)
            features[f"DINOv2 {patches}"] = pooled.flatten(1)
        return features


def _batch(pixels: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].float()


def _scale(small: NDArray[np.uint8], pixels: NDArray[np.uint8]) -> Tensor:
    return torch.tensor([small.shape[1] / pixels.shape[1], small.shape[0] / pixels.shape[0]] * 2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--photos", type=int, default=800, help="training photos to learn the probe from")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dataset, looker = open_dataset(options.data), Looker(options.weights)
    ids = list(dataset.ids("train"))
    random.Random(0).shuffle(ids)
    splits = (ids[: options.photos], list(dataset.ids("val")))
    train, test = ([seen for id in split if (seen := looker.look(dataset[id]))] for split in splits)
    figures = {kind: round(probe(train, test, kind), 4) for kind in test[0].annotated}
    if options.json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{kind:28} {figure:.3f}" for kind, figure in figures.items()))


if __name__ == "__main__":
    main()
