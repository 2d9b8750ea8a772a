"""Does the extractor know what a whole photo shows? A linear probe of caption words, and the word head itself.

    python -m benchmarks.whole_photo_words DATA [--extractor FOLDER] [--learn 3000] [--test 800] [--words 400] [--json]

DATA is a COCO folder with captions. *Probe*: frozen features of a photo (the global feature, the whole photo as a
region, the mean and the maximum over its regions) and a logistic regression for each of the commonest caption words,
learned on photos of ``train`` and tested on photos of ``val``, which no extractor of ours has seen. *Word head*: a
photo of ``val`` has a word as surely as its surest region has it; no probe. Both are mean average precision over words.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.data.dataset import Dataset
from deixis.data.open import open_dataset
from deixis.images import load_image
from deixis.regions.lite import LiteExtractor
from deixis.text.caption_words import load_tagger, nouns_and_adjectives
from deixis.types import ImageFile

REGIONS = 36


def average_precision(scores: Tensor, has: Tensor) -> float:
    """Mean over the positives, best first, of the share of positives among what is ranked up to there."""
    order = has[torch.argsort(scores, descending=True, stable=True)].double()
    precision = order.cumsum(0) / torch.arange(1, len(order) + 1)
    return float((precision * order).sum() / order.sum())


def mean_average_precision(scores: Tensor, has: Tensor) -> float:
    """Mean over the words that some photo has; scores and has (P, W)."""
    said = has.any(0).nonzero().flatten().tolist()
    return float(np.mean([average_precision(scores[:, word], has[:, word]) for word in said]))


@torch.inference_mode()
def look(extractor: LiteExtractor, dataset: Dataset, ids: Sequence[str]) -> tuple[Tensor, Tensor]:
    """The probe's features (P, 4D) of photos, and the surest of each word over their regions (P, W)."""
    features, words = [], []
    for id in ids:
        source = dataset[id].source
        assert isinstance(source, ImageFile)
        regions = extractor.extract([np.asarray(load_image(source))], max_regions=REGIONS)[0]
        assert regions.global_features is not None
        assert regions.word_probs is not None
        every = regions.features
        features.append(torch.cat([regions.global_features[0], every[-1], every.mean(0), every.amax(0)]))
        words.append(regions.word_probs.amax(0))
    return torch.stack(features), torch.stack(words)


def said_in(dataset: Dataset, ids: Sequence[str]) -> list[set[str]]:
    """The nouns and adjectives that captions of each photo have, as lemmas."""
    captions = [[caption.text for caption in dataset[id].captions] for id in ids]
    found = iter(nouns_and_adjectives((text for texts in captions for text in texts), load_tagger()))
    return [{lemma for _ in texts for lemma in next(found)} for texts in captions]


def marks(said: list[set[str]], words: list[str]) -> Tensor:
    """Which photo has which word, (P, W)."""
    return torch.tensor([[word in one for word in words] for one in said])


def probe(learn: Tensor, goal: Tensor, test: Tensor, epochs: int = 60) -> Tensor:
    """Scores (P, W) of test photos by logistic regressions learned on frozen features."""
    mean, spread = learn.mean(0), learn.std(0).clamp(min=1e-4)
    learn, test = (learn - mean) / spread, (test - mean) / spread
    torch.manual_seed(0)
    layer = torch.nn.Linear(learn.shape[1], goal.shape[1])
    torch.nn.init.constant_(layer.bias, -4.0)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-3, weight_decay=0.3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(learn)), 128):
            loss = F.binary_cross_entropy_with_logits(layer(learn[rows]), goal[rows].float())
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
        schedule.step()
    with torch.no_grad():
        scores: Tensor = layer(test)
    return scores


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="a COCO folder with the splits train and val")
    parser.add_argument("--extractor", type=Path, default=None)
    parser.add_argument("--learn", type=int, default=3000)
    parser.add_argument("--test", type=int, default=800)
    parser.add_argument("--words", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    extractor, dataset = LiteExtractor.load(options.extractor), open_dataset(options.data)
    learn = np.random.default_rng(0).permutation(dataset.ids("train"))[: options.learn].tolist()
    val = list(dataset.ids("val"))
    said, said_on_val = said_in(dataset, learn), said_in(dataset, val)
    common = Counter(word for one in said for word in one).most_common(options.words)
    words = sorted(word for word, _ in common)
    features, _ = look(extractor, dataset, learn)
    test, heads = look(extractor, dataset, val)
    scores = probe(features, marks(said, words), test[: options.test])
    results = {
        "fingerprint": extractor.fingerprint,
        "probe": round(mean_average_precision(scores, marks(said_on_val[: options.test], words)), 4),
        "word head": round(mean_average_precision(heads, marks(said_on_val, list(extractor.words))), 4),
        "words of the head": len(extractor.words),
    }
    print(json.dumps(results) if options.json else "\n".join(f"{name}: {value}" for name, value in results.items()))


if __name__ == "__main__":
    main()
