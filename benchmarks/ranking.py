"""Which ranking of proposals reaches the most annotated phrases? Recall of one extractor under several rankings.

    python -m benchmarks.ranking DATA [--extractor FOLDER] [--split val] [--photos 247] [--json]

The network looks at each photo once; its candidates are then chosen under every ranking. A phrase is reached if one of
the 36 or 100 best regions, or the whole photo, overlaps one of its boxes by .5 or by .7. The ranking that ships with
the extractor is chosen here, on validation photos, and written into its recipe.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from deixis.data.open import open_dataset
from deixis.geometry import iou
from deixis.images import load_image
from deixis.regions.lite import LiteExtractor
from deixis.regions.network.resize import fit
from deixis.regions.network.select import Ranking, select
from deixis.types import Example, ImageFile

COUNTS, OVERLAPS = (36, 100), (0.5, 0.7)
REGION, SUPPRESS, VOTE = (0.6, 0.8, 1.0), (0.55, 0.6, 0.65), (1.0, 0.7)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the network proposes on one photo, and the boxes of its phrases in the same pixels."""

    logits: Tensor  # (A, 3)
    boxes: Tensor  # (A, 3, 4)
    shape: tuple[int, int]
    phrases: list[Tensor]  # (boxes, 4) each


@torch.inference_mode()
def look(extractor: LiteExtractor, example: Example) -> Seen:
    """Let the network propose on one photo."""
    assert isinstance(example.source, ImageFile)
    photo = np.asarray(load_image(example.source))
    pixels = torch.tensor(fit(photo)).permute(2, 0, 1)[None].float()
    dense = extractor.network(pixels)
    shape = pixels.shape[-1], pixels.shape[-2]
    scale = torch.tensor([shape[0] / photo.shape[1], shape[1] / photo.shape[0]] * 2)
    phrases = [phrase for caption in example.captions for phrase in caption.phrases if len(phrase.boxes)]
    boxes = [torch.as_tensor(phrase.boxes, dtype=torch.float32).view(-1, 4) * scale for phrase in phrases]
    return Seen(dense.scores[0], dense.boxes[0], shape, boxes)


def recall(photos: Sequence[Seen], ranking: Ranking) -> dict[str, float]:
    """The share of phrases reached, for each number of regions and each overlap."""
    reached: dict[str, list[bool]] = {f"{count}@{overlap}": [] for count in COUNTS for overlap in OVERLAPS}
    for seen in photos:
        kept = select(seen.logits, seen.boxes, seen.shape, max(COUNTS), ranking).boxes
        for boxes in seen.phrases:
            best = iou(kept, boxes).amax(1)  # (regions and the whole photo,)
            for count, overlap in itertools.product(COUNTS, OVERLAPS):
                fits = max(float(best[:count].max()), float(best[-1])) >= overlap
                reached[f"{count}@{overlap}"].append(fits)
    return {name: round(float(np.mean(each)), 4) for name, each in reached.items()}


def rankings(shipped: Ranking) -> Iterable[Ranking]:
    """The shipped ranking first, then the others."""
    yield shipped
    for region, suppress, vote in itertools.product(REGION, SUPPRESS, VOTE):
        yield Ranking(thing=1.0, region=region, small=shipped.small, suppress=suppress, vote=vote)


def main() -> None:
    """Measure and print, one line a ranking."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a dataset with phrase boxes")
    parser.add_argument("--extractor", type=Path, default=None)
    parser.add_argument("--split", default="val")
    parser.add_argument("--photos", type=int, default=247)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    extractor, dataset = LiteExtractor.load(options.extractor), open_dataset(options.data)
    photos = [look(extractor, dataset[id]) for id in list(dataset.ids(options.split))[: options.photos]]
    for ranking in rankings(extractor.ranking):
        result = recall(photos, ranking)
        settings = {name: value for name, value in asdict(ranking).items() if name != "thing"}
        texts = [f"{name} {value}" for name, value in (settings | result).items()]
        print(json.dumps(settings | result) if options.json else "  ".join(texts), flush=True)


if __name__ == "__main__":
    main()
