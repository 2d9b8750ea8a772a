"""What the plots need beside the tables' metrics: F1 by how often a class is named, and accuracy over IoU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deixis.data.collate import RegionSource
from deixis.data.open import open_dataset
from deixis.geometry import iou
from deixis.metrics.grounding.f1 import ClassScore, harmonic_mean
from deixis.metrics.grounding.phrases import ANY_BOX, PhraseCase
from deixis.text.classes import ObjectClasses
from deixis.types import Box

TRAIN = "train"
AT_LEAST = (1000, 300, 100, 30, 0)
"""Lower ends of the bins of classes. Fixed, and wide as a logarithm, so that the rare half is not one bin of zeros."""
THRESHOLDS = tuple(round(0.1 * at, 1) for at in range(1, 10))


@cache
def class_frequency(dataset: Path, reader: str | None, class_list: Path) -> Mapping[str, int]:
    """Return how many visual phrases of the training captions name each class, by their last word.

    Cyclical's figure 4 sorts classes by their boxes in the training set; ours has the same phrases, but no boxes that
    anything trained on, so phrases are counted. Plain words would count "stands" as a stand.
    """
    classes = ObjectClasses.from_list(class_list)
    heads = Counter(
        caption.tokens[phrase.last - 1].text.lower()
        for example in open_dataset(dataset, reader).examples(TRAIN)
        for caption in example.captions
        for phrase in caption.phrases
        if phrase.visual
    )
    found: Counter[str] = Counter()
    for word, count in heads.items():
        if (name := classes.of_word(word)) is not None:
            found[name] += count
    return found


def f1_by_bin(
    classes: Mapping[str, Sequence[ClassScore]], frequency: Mapping[str, int], at_least: Sequence[int] = AT_LEAST
) -> list[dict[str, Any]]:
    """Return for each bin of classes how many there are, in how many reference words, and their F1 in each mode.

    F1 follows GVD's rule inside a bin too: the harmonic mean of the classes' mean precision and mean recall. One bin
    over all classes is therefore the table's F1. ``F1_all`` and ``F1_loc`` are None in an empty bin.
    """
    bins: list[dict[str, Any]] = []
    above: float = np.inf
    for low in at_least:
        bin_: dict[str, Any] = {"at least": low, "classes": 0, "words": 0}
        for mode, scores in classes.items():
            own = [score for score in scores if low <= frequency.get(score.label, 0) < above]
            bin_["classes"], bin_[f"F1_{mode}"] = len(own), None
            if own:
                means = (float(np.mean([s.precision for s in own])), float(np.mean([s.recall for s in own])))
                bin_[f"F1_{mode}"] = round(harmonic_mean(*means), 5)
            if mode == "all":
                bin_["words"] = sum(score.recall_count for score in own)
        bins.append(bin_)
        above = low
    return bins


def iou_curve(cases: Sequence[PhraseCase], offered: Mapping[str, Sequence[Box]] | None = None) -> list[float]:
    """Return the share of annotated phrases whose first box reaches each threshold, any-box; .5 is R@1.

    With ``offered``, the regions of each photo, it is the share for which any region does: what no choice can exceed.
    """
    best = [_overlap(case.ranked[:1] if offered is None else offered[case.image], case) for case in cases if case.boxes]
    reached: NDArray[np.bool_] = np.array(best)[:, None] >= np.array(THRESHOLDS)  # (P, 9)
    return [round(float(share), 5) for share in reached.mean(0)]


def regions_of(images: Sequence[str], source: RegionSource) -> dict[str, tuple[Box, ...]]:
    """Return the boxes of the regions a model chooses from, by photo."""
    found: dict[str, tuple[Box, ...]] = {}
    for image in images:
        regions = source.regions([image])
        x1, y1, x2, y2 = regions.boxes[0][regions.mask[0].bool()].T.tolist()
        found[image] = tuple(zip(x1, y1, x2, y2, strict=True))
    return found


def _overlap(boxes: Sequence[Box], case: PhraseCase) -> float:
    if not boxes:
        return 0.0
    mine, theirs = np.array(boxes, dtype=np.float64), np.array(case.boxes, dtype=np.float64)
    return float(iou(mine, theirs, plus_one=ANY_BOX.plus_one).max())
