"""Do the features of `lite` speak? A linear probe and label matching, against ImageNet features in the same boxes.

    python benchmarks/regions_words.py DATA [--photos 1500] [--json]

*Probe*: the head noun of annotated boxes (Flickr30k Entities), by a linear classifier learned on boxes of training
photos: human boxes serve to measure here, never to train the extractor. *Label matching*: a phrase gets the region with
the highest score of its head noun, times the prior of :func:`deixis.regions.training.words.log_priors`. The score comes
from the shipped word head, and, for a fair comparison, from linear word heads learned alike from the captions of the
same photos on frozen features of either kind. The prior alone, and words without it, stand beside.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from deixis import geometry
from deixis.data.open import open_dataset
from deixis.images import load_image
from deixis.regions.lite import LiteExtractor
from deixis.regions.network.detector import Described
from deixis.regions.network.resize import fit
from deixis.regions.network.roi import roi_align
from deixis.regions.network.trunks.efficientnet import imagenet_head, imagenet_trunk
from deixis.regions.training.words import WHOLE_REGION, WHOLE_THING, contrast, log_priors, pool_over_regions, thing_gate
from deixis.text.caption_words import load_tagger, nouns_and_adjectives
from deixis.types import Example, ImageFile, Regions

REGIONS = 36
KINDS = ("ImageNet", "lite")


@dataclass(frozen=True, slots=True)
class Seen:
    """One photo: its regions, features of both kinds there and in annotated boxes, nouns of these, caption words."""

    regions: Regions
    features: dict[str, Tensor]  # (N, D) each
    annotated: dict[str, Tensor]  # (P, D) each
    nouns: list[str | None]
    boxes: list[Tensor]  # (boxes, 4) of each phrase
    words: Tensor  # (W,) captions with the word


class Looker:
    """Runs the extractor and the ImageNet trunk over photos."""

    def __init__(self, folder: Path | None) -> None:
        self.lite = LiteExtractor.load(folder)
        self.trunk, self.head, self.tagger = imagenet_trunk().eval(), imagenet_head(), load_tagger()
        self.index = {word: at for at, word in enumerate(self.lite.words)}

    @torch.inference_mode()
    def look(self, example: Example) -> Seen:
        """Everything about one photo."""
        assert isinstance(example.source, ImageFile)
        pixels = np.asarray(load_image(example.source))
        regions = self.lite.extract([pixels], max_regions=REGIONS)[0]
        fitted = fit(pixels)
        scale = torch.tensor([fitted.shape[1] / pixels.shape[1], fitted.shape[0] / pixels.shape[0]] * 2)
        batch = torch.from_numpy(fitted.copy()).permute(2, 0, 1)[None].float()
        batch = batch.contiguous(memory_format=torch.channels_last)
        dense = self.lite.network(batch)
        deep = F.relu6(self.head(self.trunk(batch)[2]))  # (1, 1280, H/32, W/32)
        phrases = [(s.phrase_text(p), p.boxes) for s in example.captions for p in s.phrases if p.boxes]
        found = nouns_and_adjectives([text for text, _ in phrases], self.tagger)
        nouns = [next((word for word in reversed(words) if word in self.index), None) for words in found]
        first = torch.tensor([boxes[0] for _, boxes in phrases]).reshape(-1, 4)

        def deep_of(boxes: Tensor) -> Tensor:
            rows = torch.zeros(len(boxes), dtype=torch.long)
            return roi_align(deep, boxes * scale, rows, 1 / 32, 1, 4).flatten(1)

        def lite_of(boxes: Tensor) -> Tensor:
            rows = torch.zeros(len(boxes), dtype=torch.long)
            described: Described = self.lite.network.describe_boxes(dense, boxes * scale, rows)
            return described.features

        words = torch.zeros(len(self.index))
        for caption in nouns_and_adjectives([caption.text for caption in example.captions], self.tagger):
            for word in caption:
                if word in self.index:
                    words[self.index[word]] += 1
        return Seen(
            regions,
            {"ImageNet": deep_of(regions.boxes), "lite": regions.features},
            {"ImageNet": deep_of(first), "lite": lite_of(first)},
            nouns,
            [torch.tensor(boxes) for _, boxes in phrases],
            words,
        )


def standardise(train: Tensor) -> Callable[[Tensor], Tensor]:
    """Mean 0 and deviation 1, as on the training photos."""
    mean, spread = train.mean(0), train.std(0).clamp(min=1e-4)
    return lambda x: (x - mean) / spread


class HasNouns(Protocol):
    """Annotated boxes: features of several kinds, (P, D) each, and the head noun of each box."""

    @property
    def annotated(self) -> dict[str, Tensor]: ...  # noqa: D102

    @property
    def nouns(self) -> list[str | None]: ...  # noqa: D102


def probe(train: Sequence[HasNouns], test: Sequence[HasNouns], kind: str) -> float:
    """Share of annotated test boxes whose head noun a linear classifier names; classes seen at least 20 times."""
    counts = Counter(noun for seen in train for noun in seen.nouns if noun)
    classes = {noun: at for at, noun in enumerate(sorted(noun for noun, times in counts.items() if times >= 20))}

    def gather(photos: Sequence[HasNouns]) -> tuple[Tensor, Tensor]:
        x = torch.cat([seen.annotated[kind] for seen in photos])
        y = torch.tensor([classes.get(noun or "", -1) for seen in photos for noun in seen.nouns])
        return x[y >= 0], y[y >= 0]

    x, y = gather(train)
    scale = standardise(x)
    torch.manual_seed(0)
    layer = torch.nn.Linear(x.shape[1], len(classes))
    optimizer = torch.optim.AdamW(layer.parameters(), lr=2e-3, weight_decay=0.1)
    x = scale(x)
    for _ in range(15):
        for rows in torch.split(torch.randperm(len(x)), 256):
            optimizer.zero_grad()
            torch.autograd.backward(F.cross_entropy(layer(x[rows]), y[rows]))
            optimizer.step()
    at, wanted = gather(test)
    with torch.no_grad():
        return float((layer(scale(at)).argmax(1) == wanted).float().mean())


def scores_of(regions: Regions) -> tuple[Tensor, Tensor]:
    """Objectness and regionness with the whole image's as in training."""
    assert regions.regionness is not None
    things, parts = regions.objectness.clone(), regions.regionness.clone()
    things[-1], parts[-1] = things[-1].clamp(min=WHOLE_THING), parts[-1].clamp(min=WHOLE_REGION)
    return things, parts


def learn_words(train: list[Seen], kind: str, gate: Tensor) -> Callable[[Seen], Tensor]:
    """A linear word head on frozen features, learned from captions; gives log-probabilities (N, W) of a photo."""
    scale = standardise(torch.cat([seen.features[kind] for seen in train]))
    torch.manual_seed(0)
    layer = torch.nn.Linear(train[0].features[kind].shape[1], len(gate))
    torch.nn.init.constant_(layer.bias, -4.0)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-3, weight_decay=0.1)
    full = [seen for seen in train if len(seen.regions) == REGIONS + 1]
    for _ in range(6):
        for rows in torch.split(torch.randperm(len(full)), 32):
            group = [full[at] for at in rows.tolist()]
            logits = layer(scale(torch.stack([seen.features[kind] for seen in group])))  # (B, N, W)
            pairs = [scores_of(seen.regions) for seen in group]
            priors = log_priors(torch.stack([p[0] for p in pairs]), torch.stack([p[1] for p in pairs]), gate)
            pooled = pool_over_regions(logits, priors)
            words = torch.stack([seen.words for seen in group])
            goal = (words * 0.6).clamp(max=1.0)
            loss = F.binary_cross_entropy_with_logits(pooled, goal, reduction="sum") / len(group)
            optimizer.zero_grad()
            torch.autograd.backward(loss + 0.5 * contrast(pooled, words > 0))
            optimizer.step()

    @torch.no_grad()
    def score(seen: Seen) -> Tensor:
        return F.logsigmoid(layer(scale(seen.features[kind])))

    return score


def match(
    test: list[Seen], index: dict[str, int], score: Callable[[Seen], Tensor], gate: Tensor, prior: float
) -> tuple[float, float]:
    """R@1 and pointing, any-box, over all boxed phrases; one whose noun is no caption word takes the best thing."""
    hits, points = [], []
    for seen in test:
        boxes, logs = seen.regions.boxes, score(seen)
        things, parts = scores_of(seen.regions)
        priors = log_priors(things, parts, gate)  # (N, W)
        for noun, wanted in zip(seen.nouns, seen.boxes, strict=True):
            total = things if noun is None else logs[:, index[noun]] + prior * priors[:, index[noun]]
            best = int(total.argmax())
            hits.append(bool((geometry.iou(boxes[best : best + 1], wanted, plus_one=True) >= 0.5).any()))
            x, y = geometry.centres(boxes[best])
            points.append(
                bool(((x > wanted[:, 0]) & (x < wanted[:, 2]) & (y > wanted[:, 1]) & (y < wanted[:, 3])).any())
            )
    return float(np.mean(hits)), float(np.mean(points))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder in the layout of Flickr30k Entities")
    parser.add_argument("--photos", type=int, default=1500, help="training photos to learn probes and heads from")
    parser.add_argument("--extractor", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    looker, dataset = Looker(options.extractor), open_dataset(options.data)
    train = [looker.look(dataset[id]) for id in dataset.ids("train")[: options.photos]]
    test = [looker.look(dataset[id]) for id in dataset.ids("val")]
    gate = thing_gate(looker.lite.words)
    results: dict[str, object] = {"photos": len(train), "fingerprint": looker.lite.fingerprint}
    for kind in KINDS:
        results[f"probe {kind}"] = round(probe(train, test, kind), 4)
    for kind in KINDS:
        score = learn_words(train, kind, gate)
        results[f"label matching, linear head on {kind}"] = match(test, looker.index, score, gate, 1.0)

    def shipped(seen: Seen) -> Tensor:
        assert seen.regions.word_probs is not None
        return seen.regions.word_probs.clamp(min=1e-6).log()

    for prior in (0.0, 1.0, 2.0):
        results[f"label matching, shipped words, prior^{prior:g}"] = match(test, looker.index, shipped, gate, prior)
    nothing = match(test, looker.index, lambda seen: torch.zeros(len(seen.regions), len(gate)), gate, 1.0)
    results["prior alone"] = nothing
    if options.json:
        print(json.dumps(results))
        return
    for name, value in results.items():
        shown = "R@1 {:.3f}, pointing {:.3f}".format(*value) if isinstance(value, tuple) else value
        print(f"{name}: {shown}")


if __name__ == "__main__":
    main()
