"""Recall of regions: which share of the phrases people drew boxes for can be reached at all.

The bound of every grounder: a phrase is reached at K if one of the K best regions of its image, or the whole image,
overlaps it by at least a threshold. Two protocols, never mixed: *any-box* (InfoGround; any box of the phrase, +1 areas)
and *merged-box* (ReIR, KAC, GroundeR; the union of the phrase's boxes, continuous areas).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deixis import geometry
from deixis.atomic import write_text
from deixis.errors import DeixisError
from deixis.regions.curve import CurveLine, curve_svg, save_curve
from deixis.regions.store.reader import RegionStore
from deixis.types import Example, Phrase, Regions

TOPS = (10, 36, 50, 100)
THRESHOLDS = (0.5, 0.7)
PROTOCOLS = ("any-box", "merged-box")
ALL = "all"

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Recall:
    """For each protocol, threshold and phrase type: the share of phrases reached by the best K, for K = 0, 1, 2 ..."""

    name: str
    fingerprint: str
    images: int
    missing: int
    """Images of the split that the store does not have; their phrases count as not reached."""
    phrases: dict[str, int]
    """Boxed phrases per type. A phrase of two types counts in both."""
    curves: dict[tuple[str, float, str], Array]

    def at(self, protocol: str, threshold: float, top: int, kind: str = ALL) -> float:
        """Return the recall with the ``top`` best regions and the whole image."""
        curve = self.curves[protocol, threshold, kind]
        return float(curve[min(top, len(curve) - 1)])

    def to_json(self) -> dict[str, Any]:
        """Return everything the table shows."""
        return {
            "data": self.name,
            "fingerprint": self.fingerprint,
            "images": self.images,
            "missing": self.missing,
            "phrases": self.phrases,
            "recall": [
                {
                    "protocol": protocol,
                    "iou": threshold,
                    "type": kind,
                    **{f"top{top}": round(self.at(protocol, threshold, top, kind), 4) for top in TOPS},
                }
                for protocol, threshold, kind in self.curves
            ],
        }


def measure_recall(store: RegionStore, examples: Iterable[Example], name: str = "") -> Recall:
    """Measure the recall of a store on the boxed phrases of some examples."""
    ranks: dict[tuple[str, float, str], list[int]] = defaultdict(list)
    phrases: dict[str, int] = defaultdict(int)
    images = missing = deepest = 0
    for example in examples:
        boxed = [phrase for caption in example.captions for phrase in caption.phrases if phrase.boxes]
        images += 1
        regions = store.get(example.id, ("objectness",), size=example.size) if example.id in store else None
        missing += regions is None
        deepest = max(deepest, _depth(regions))
        for phrase in boxed:
            kinds = (ALL, *(phrase.types or ("untyped",)))
            for kind in kinds:
                phrases[kind] += 1
            for (protocol, threshold), rank in first_ranks(regions, phrase).items():
                for kind in kinds:
                    ranks[protocol, threshold, kind].append(rank)
    if not phrases:
        raise DeixisError(f"{name or 'this data'} has no boxed phrases to measure recall on")
    order = [ALL, *sorted((kind for kind in phrases if kind != ALL), key=lambda kind: -phrases[kind])]
    curves = {}
    for protocol in PROTOCOLS:
        for threshold in THRESHOLDS:
            for kind in order:
                found = np.asarray(ranks[protocol, threshold, kind])
                reached = np.bincount(found[found <= deepest], minlength=deepest + 1).cumsum()
                curves[protocol, threshold, kind] = reached / len(found)
    counts = {kind: phrases[kind] for kind in order}
    return Recall(name, store.fingerprint, images, missing, counts, curves)


NEVER = 2**30


def first_ranks(regions: Regions | None, phrase: Phrase) -> dict[tuple[str, float], int]:
    """Return how many regions of each frame it takes to reach a phrase; 0 if the whole image does, NEVER if none."""
    if regions is None:
        return {(protocol, threshold): NEVER for protocol in PROTOCOLS for threshold in THRESHOLDS}
    boxes = regions.boxes.double().numpy()
    depth = region_depths(regions)
    frames = np.asarray(phrase.frames or (0,) * len(phrase.boxes))
    targets = np.asarray(phrase.boxes, dtype=np.float64)  # (M, 4)
    merged = np.stack([geometry.union_box(targets[frames == frame]) for frame in np.unique(frames)])
    own = regions.frame.numpy()
    ranks = {}
    for protocol, goal, at in (("any-box", targets, frames), ("merged-box", merged, np.unique(frames))):
        overlap = geometry.iou(boxes, goal, plus_one=protocol == "any-box")  # (N, M)
        overlap = np.where(own[:, None] == at, overlap, 0.0).max(1)
        for threshold in THRESHOLDS:
            good = depth[overlap >= threshold]
            ranks[protocol, threshold] = int(good.min()) if len(good) else NEVER
    return ranks


def region_depths(regions: Regions) -> NDArray[np.int64]:
    """Return the place of each region in its frame, from 1; the whole frame (its last region) has 0."""
    depths = np.zeros(len(regions), dtype=np.int64)
    for frame in range(regions.frames):
        rows = np.flatnonzero(regions.frame.numpy() == frame)
        depths[rows[:-1]] = np.arange(1, len(rows))
    return depths


def _depth(regions: Regions | None) -> int:
    return 0 if regions is None or not len(regions) else int(region_depths(regions).max())


def recall_table(result: Recall) -> str:
    """Return a table for the terminal: types down, tops across, both thresholds and protocols."""
    head = f"{'':22}{'phrases':>8}" + "".join(f"{f'top {top}':>9}" for top in TOPS)
    lines = [
        f"Recall of {result.fingerprint} on {result.name}: {result.images:,} images, {result.phrases[ALL]:,} boxed "
        "phrases; the whole image always counts as one more region"
    ]
    if result.missing:
        lines.append(f"{result.missing:,} images are not in the store: their phrases count as not reached")
    for protocol in PROTOCOLS:
        for threshold in THRESHOLDS:
            lines += ["", f"{protocol}, IoU >= {threshold}", head]
            for kind, count in result.phrases.items():
                row = "".join(f"{result.at(protocol, threshold, top, kind):9.3f}" for top in TOPS)
                lines.append(f"  {kind:20}{count:8,}{row}")
    return "\n".join(lines)


def draw_curve(result: Recall, path: Path) -> None:
    """Draw recall over the number of regions: all phrases in both protocols and thresholds, and each type any-box."""
    overall = [
        CurveLine(f"{protocol}, IoU {threshold}", result.curves[protocol, threshold, ALL], dashed=threshold > 0.5)
        for protocol in PROTOCOLS
        for threshold in THRESHOLDS
    ]
    types = [
        CurveLine(f"{kind} ({count:,})", result.curves["any-box", 0.5, kind])
        for kind, count in result.phrases.items()
        if kind != ALL
    ]
    panels = [("All phrases", overall), ("By type: any-box, IoU 0.5", types)]
    title = f"Recall of regions on {result.name} ({result.fingerprint})"
    save_curve(title, panels, path) if path.suffix == ".png" else _write_text(title, panels, path)


def _write_text(title: str, panels: list[tuple[str, list[CurveLine]]], path: Path) -> None:
    svg = curve_svg(title, panels)
    if path.suffix == ".html":
        svg = f"<!doctype html><meta charset=utf-8><title>Recall of regions</title><body style='margin:2em'>{svg}"
    write_text(path, svg)
