"""Selective search (Uijlings et al., IJCV 2013): regions without any trained network.

An over-segmentation (Felzenszwalb and Huttenlocher, 2004) is grouped step by step, always the two most similar
neighbours, and the box of every group on the way is a proposal (section 3.1). Diversification (section 3.2) comes from
two colour spaces, two scales and two sums of similarities: the paper's "fast" mode. The paper ranks boxes by their
place in the hierarchy times a random number; ours counts how many of the eight groupings found a box (or nearly it)
and prefers larger ones, which needs no chance and finds more with fewer boxes.

Each region is described by what it looks like, not by what it is: a colour histogram, and colours and edge directions
on a 4x4 grid. Enough for colours and textures; a trained extractor knows far more.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from deixis.errors import MissingExtraError
from deixis.regions.appearance import BINS, appearance, appearance_planes, grid_map, whole_box
from deixis.types import Regions

Array = NDArray[Any]

SHORTEST = 6
"""Boxes with a shorter side, in pixels of the segmented photo, are dropped."""


@dataclass(frozen=True, slots=True)
class SelectiveSearch:
    """The extractor ``selective-search``.

    Objectness is the share of groupings in which a box (or nearly it) occurs, times its share of the image to the power
    ``size_power``.
    """

    side: int = 256
    """The longer side at which photos are segmented."""
    scales: tuple[float, ...] = (50.0, 100.0)
    """Felzenszwalb's k at that size: larger gives larger first segments."""
    smallest: int = 20
    """Segments have at least so many pixels."""
    alike: float = 0.7
    """Boxes that overlap by more than this count as one."""
    size_power: float = 0.3
    """How much larger boxes are preferred; with ``alike``, the best of a few values on 40 photos of Flickr8k val."""

    @property
    def fingerprint(self) -> str:
        """Settings and version; there are no weights."""
        text = json.dumps([asdict(self), BINS, 1], sort_keys=True)
        return f"selective-search:{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def extract(self, images: Sequence[NDArray[np.uint8]], *, max_regions: int = 100) -> list[Regions]:
        """Return at most ``max_regions`` regions and the whole image for each image."""
        return [self._extract(image, max_regions) for image in images]

    def _extract(self, image: NDArray[np.uint8], max_regions: int) -> Regions:
        height, width = image.shape[:2]
        ratio = min(1.0, self.side / max(height, width))
        small_size = max(1, round(width * ratio)), max(1, round(height * ratio))
        small = np.asarray(Image.fromarray(image).resize(small_size, Image.Resampling.BILINEAR))
        boxes, scores = self._propose(small)
        boxes, scores = boxes[:max_regions], scores[:max_regions]
        boxes = np.concatenate([boxes, whole_box(small)])  # (N, 4)
        planes = appearance_planes(small)
        features = appearance(planes, boxes)  # (N, D)
        scaled = boxes * np.array([width / small_size[0], height / small_size[1]] * 2)
        return Regions(
            boxes=torch.from_numpy(scaled).float(),
            features=torch.from_numpy(features),
            objectness=torch.from_numpy(np.append(scores, 0.0)).float(),
            size=(width, height),
            fingerprint=self.fingerprint,
            global_features=torch.from_numpy(features[-1:].copy()),
            feature_map=torch.from_numpy(grid_map(planes))[None],
        )

    def _propose(self, image: NDArray[np.uint8]) -> tuple[Array, Array]:
        """Return boxes and scores, best first."""
        if min(image.shape[:2]) < 8:
            return np.zeros((0, 4)), np.zeros(0)
        found: list[Array] = []
        for space, scale in itertools.product(_colour_spaces(image), self.scales):
            labels = _segment(space, scale, self.smallest)
            parts = _describe(space, labels)
            found += [_group(parts, with_colour) for with_colour in (True, False)]
        return self._vote(found, image.shape[0] * image.shape[1])

    def _vote(self, groupings: list[Array], pixels: int) -> tuple[Array, Array]:
        """Merge nearly equal boxes of all groupings; return them with their scores, best first."""
        boxes = np.concatenate(groupings)
        boxes[:, 2:] += 1  # from inclusive pixels to edges
        source = np.concatenate([np.full(len(found), at) for at, found in enumerate(groupings)])
        good = (boxes[:, 2:] - boxes[:, :2]).min(1) >= SHORTEST
        unique, which = np.unique(boxes[good], axis=0, return_inverse=True)
        votes = np.zeros((len(unique), len(groupings)), dtype=np.float32)
        votes[which.ravel(), source[good]] = 1
        near = _overlaps(unique) > self.alike  # (U, U)
        share = (near.astype(np.float32) @ votes > 0).mean(1)
        scores = share * ((unique[:, 2:] - unique[:, :2]).prod(1) / pixels) ** self.size_power
        kept: list[int] = []
        free = np.ones(len(unique), dtype=bool)
        for at in np.argsort(-scores, kind="stable").tolist():
            if free[at]:
                kept.append(at)
                free &= ~near[at]
        return unique[kept], scores[kept]


def _colour_spaces(image: NDArray[np.uint8]) -> list[Array]:
    """Return the image in Lab and in HSV, each channel 0 to 1."""
    spaces = [np.asarray(Image.fromarray(image).convert(mode)) for mode in ("LAB", "HSV")]
    # Pillow keeps a and b as signed bytes: shift grey to the middle.
    spaces[0] = np.stack([spaces[0][..., 0], *((spaces[0][..., at] ^ 128) for at in (1, 2))], -1)
    return [space.astype(np.float32) / 255 for space in spaces]


def _segment(image: Array, scale: float, smallest: int) -> Array:
    try:
        from skimage.segmentation import felzenszwalb
    except ImportError as error:
        raise MissingExtraError("scikit-image", "selective-search", "selective search") from error
    labels: Array = felzenszwalb(image, scale=scale, sigma=0.8, min_size=smallest)
    return labels


@dataclass(slots=True)
class _Parts:
    """The first segments: normalised histograms, sizes, boxes (inclusive pixels), and who touches whom."""

    colour: Array  # (S, 75)
    texture: Array  # (S, 240)
    size: Array  # (S,)
    boxes: Array  # (S, 4)
    touching: list[set[int]]
    pixels: int


def _describe(image: Array, labels: Array) -> _Parts:
    """Measure every segment: 25 colour bins per channel, 8 edge directions x 10 strengths per channel (section 3.2)."""
    count = int(labels.max()) + 1
    flat = labels.ravel()
    size = np.bincount(flat, minlength=count).astype(np.float64)
    colour, texture = [], []
    for channel in np.moveaxis(image, -1, 0):
        bins = (channel.ravel() * 24.999).astype(np.int64)
        colour.append(np.bincount(flat * 25 + bins, minlength=count * 25).reshape(count, 25))
        down, right = np.gradient(channel)
        direction = ((np.arctan2(down, right) / (2 * np.pi) + 0.5) * 7.999).astype(np.int64).ravel()
        strength = (np.minimum(np.hypot(down, right) * 4, 0.999) * 10).astype(np.int64).ravel()
        bins = direction * 10 + strength
        texture.append(np.bincount(flat * 80 + bins, minlength=count * 80).reshape(count, 80))
    rows, columns = np.divmod(np.arange(flat.size), labels.shape[1])
    boxes = np.zeros((count, 4))
    for at, (values, extreme) in enumerate(
        [(columns, np.minimum), (rows, np.minimum), (columns, np.maximum), (rows, np.maximum)]
    ):
        out = np.full(count, 1e9 if at < 2 else -1.0)
        extreme.at(out, flat, values)
        boxes[:, at] = out
    touching: list[set[int]] = [set() for _ in range(count)]
    pairs = [(labels[:, :-1], labels[:, 1:]), (labels[:-1], labels[1:])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], 1) for a, b in pairs])
    for a, b in np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0).tolist():
        touching[a].add(b)
        touching[b].add(a)
    return _Parts(
        colour=np.concatenate(colour, 1) / (3 * size[:, None]),
        texture=np.concatenate(texture, 1) / (3 * size[:, None]),
        size=size,
        boxes=boxes,
        touching=touching,
        pixels=flat.size,
    )


def _group(parts: _Parts, with_colour: bool) -> Array:
    """Merge the most similar neighbours until one is left; return the boxes of all segments and groups."""
    count = len(parts.size)
    total = 2 * count - 1
    kinds = [parts.colour, parts.texture] if with_colour else [parts.texture]
    histograms = [np.concatenate([kind, np.zeros((total - count, kind.shape[1]))]) for kind in kinds]
    size = np.concatenate([parts.size, np.zeros(total - count)])
    boxes = np.concatenate([parts.boxes, np.zeros((total - count, 4))])
    touching = [set(near) for near in parts.touching]
    alive = np.ones(total, dtype=bool)

    def similarities(one: int, others: list[int]) -> Array:
        low = np.minimum(boxes[one, :2], boxes[others, :2])
        high = np.maximum(boxes[one, 2:], boxes[others, 2:])
        around = (high - low + 1).prod(1)
        both = size[one] + size[others]
        value: Array = 1 - both / parts.pixels + 1 - (around - both) / parts.pixels  # size and fill
        for histogram in histograms:
            value = value + np.minimum(histogram[one], histogram[others]).sum(1)
        return value

    heap: list[tuple[float, int, int]] = []
    for one in range(count):
        others = sorted(other for other in touching[one] if other > one)
        if others:
            heap += [
                (-value, one, other) for value, other in zip(similarities(one, others).tolist(), others, strict=True)
            ]
    heapq.heapify(heap)
    new = count
    while heap:
        _, one, other = heapq.heappop(heap)
        if not (alive[one] and alive[other]):
            continue
        both = size[one] + size[other]
        for histogram in histograms:
            histogram[new] = (size[one] * histogram[one] + size[other] * histogram[other]) / both
        size[new] = both
        boxes[new, :2] = np.minimum(boxes[one, :2], boxes[other, :2])
        boxes[new, 2:] = np.maximum(boxes[one, 2:], boxes[other, 2:])
        alive[one] = alive[other] = False
        near = (touching[one] | touching[other]) - {one, other}
        touching.append(near)
        for neighbour in near:
            touching[neighbour] -= {one, other}
            touching[neighbour].add(new)
        others = sorted(near)
        if others:
            values = similarities(new, others).tolist()
            for value, neighbour in zip(values, others, strict=True):
                heapq.heappush(heap, (-value, neighbour, new))
        new += 1
    return boxes[:new]


def _overlaps(boxes: Array) -> Array:
    """Return the intersection over union of every pair; side by side, which is much quicker than on (U, U, 4)."""
    x1, y1, x2, y2 = boxes.astype(np.float32).T
    shared = np.minimum(x2[:, None], x2) - np.maximum(x1[:, None], x1)
    np.maximum(shared, 0, out=shared)
    shared *= (np.minimum(y2[:, None], y2) - np.maximum(y1[:, None], y1)).clip(min=0)
    area = (x2 - x1) * (y2 - y1)
    overlaps: Array = shared / (area[:, None] + area - shared)
    return overlaps
