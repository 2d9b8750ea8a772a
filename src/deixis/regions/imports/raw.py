"""What every import hands over: plain arrays of one image, made into regions in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deixis.errors import BadFileError
from deixis.types import Regions

Array = NDArray[Any]

MAX_FRAMES = 10_000
MAX_SIDE = 2**24
_LARGEST = float(np.finfo(np.float16).max)
"""Stores keep half precision; what is larger would become infinite there."""


@dataclass(frozen=True, slots=True)
class RawRegions:
    """Arrays as a file holds them. ``labels`` are columns of the class names, -1 for background."""

    boxes: Array  # (N, 4)
    features: Array  # (N, D)
    size: tuple[int, int]
    scores: Array | None = None  # (N,)
    labels: Array | None = None  # (N,)
    class_probs: Array | None = None  # (N, C)
    frame: Array | None = None  # (N,)
    frames: int = 1
    global_features: Array | None = None  # (F, G)
    feature_map: Array | None = None  # (F, H, W, M)
    timeline: Array | None = None  # (S, G)


@dataclass(frozen=True, slots=True)
class Source:
    """An opened feature set: the ids in order, and a way to read the images one after the other in that order.

    An image that cannot be used is given with the reason in place of its arrays.
    """

    ids: list[str]
    read: Callable[[], Iterator[tuple[str, RawRegions | str]]]
    notes: list[str]
    """What the user should know, such as parts of the files that were passed over."""


def to_regions(raw: RawRegions, fingerprint: str, class_names: tuple[str, ...]) -> Regions:
    """Sort the regions by score within each frame and add the whole frame as its last region.

    The whole frame is described by the mean of the frame's regions, which is what Up-Down feeds its first LSTM. It is
    the global feature too, unless a file gives one. Where all scores are missing every region counts as one whole
    thing.
    """
    count = len(raw.boxes) if raw.boxes.ndim else 0
    _check(raw, count)
    width, height = raw.size
    features = np.asarray(raw.features, dtype=np.float32)
    scores = np.ones(count, dtype=np.float32) if raw.scores is None else np.asarray(raw.scores, dtype=np.float32)
    frame = np.zeros(count, dtype=np.int64) if raw.frame is None else np.asarray(raw.frame, dtype=np.int64)
    probs = _class_probs(raw, scores, len(class_names))
    order = np.lexsort((np.arange(count), -scores, frame))
    rows: dict[str, list[Array]] = {"boxes": [], "features": [], "objectness": [], "frame": [], "class_probs": []}
    means = []
    for number in range(raw.frames):
        own = order[frame[order] == number]
        mean = features[own].mean(0, keepdims=True) if len(own) else np.zeros((1, features.shape[1]), np.float32)
        means.append(mean)
        rows["boxes"] += [np.asarray(raw.boxes, dtype=np.float32)[own], np.array([[0, 0, width, height]], np.float32)]
        rows["features"] += [features[own], mean]
        rows["objectness"] += [scores[own], np.zeros(1, np.float32)]
        rows["frame"] += [frame[own], np.array([number])]
        if probs is not None:
            rows["class_probs"] += [probs[own], np.zeros((1, probs.shape[1]), np.float32)]
    joined = {name: torch.from_numpy(np.concatenate(parts)) for name, parts in rows.items() if parts}
    return Regions(
        **joined,  # type: ignore[arg-type]
        size=raw.size,
        fingerprint=fingerprint,
        class_names=class_names if probs is not None else (),
        global_features=_single(raw.global_features if raw.global_features is not None else np.concatenate(means)),
        feature_map=None if raw.feature_map is None else _single(raw.feature_map),
        timeline=None if raw.timeline is None else _single(raw.timeline),
    )


def _single(array: Array) -> Tensor:
    return torch.from_numpy(np.array(array, dtype=np.float32))


def _check(raw: RawRegions, count: int) -> None:
    if raw.boxes.shape != (count, 4) or raw.features.ndim != 2 or len(raw.features) != count:
        raise BadFileError(f"boxes {raw.boxes.shape} and features {raw.features.shape} do not go together")
    for name, axes in (("boxes", 2), ("features", 2), ("scores", 1), ("labels", 1), ("class_probs", 2), ("frame", 1)):
        value: Array | None = getattr(raw, name)
        if value is None:
            continue
        if value.ndim != axes or len(value) != count:
            raise BadFileError(f"{name} of shape {value.shape} for {count} boxes")
        if value.dtype.kind not in "fiub":
            raise BadFileError(f"{name} should be numbers, not {value.dtype}")
        if not np.isfinite(value).all() or (name != "boxes" and count and np.abs(value).max(initial=0) > _LARGEST):
            raise BadFileError(f"{name} that are not finite, or over {_LARGEST:,.0f}")
    for name, axes in (("global_features", 2), ("feature_map", 4), ("timeline", 2)):
        more: Array | None = getattr(raw, name)
        if more is None:
            continue
        if more.ndim != axes or more.dtype.kind not in "fiub" or (name != "timeline" and len(more) != raw.frames):
            raise BadFileError(f"{name} of shape {more.shape} and {more.dtype} for {raw.frames} frames")
        if not np.isfinite(more).all() or np.abs(more).max(initial=0) > _LARGEST:
            raise BadFileError(f"{name} that are not finite, or over {_LARGEST:,.0f}")
    if not 1 <= min(raw.size) <= max(raw.size) <= MAX_SIDE:
        raise BadFileError(f"the image size is {raw.size[0]}x{raw.size[1]}")
    if not 1 <= raw.frames <= MAX_FRAMES:
        raise BadFileError(f"a clip of {raw.frames} frames; from 1 to {MAX_FRAMES:,} are read")
    if raw.frame is not None and count and not 0 <= raw.frame.min() <= raw.frame.max() < raw.frames:
        raise BadFileError(f"frames {raw.frame.min()} to {raw.frame.max()} of a clip of {raw.frames}")


def _class_probs(raw: RawRegions, scores: Array, classes: int) -> Array | None:
    if raw.class_probs is not None:
        if classes and raw.class_probs.shape[1] != classes:
            raise BadFileError(f"{raw.class_probs.shape[1]} class probabilities for {classes} class names")
        return np.asarray(raw.class_probs, dtype=np.float32) if classes else None
    if raw.labels is None or not classes:
        return None
    labels = np.asarray(raw.labels, dtype=np.int64)
    if len(labels) and labels.max() >= classes:
        raise BadFileError(f"class {labels.max()} of only {classes} class names")
    # Only the best class was kept in these files: its score stands there, all other columns are 0.
    probs = np.zeros((len(labels), classes), dtype=np.float32)
    known = np.flatnonzero(labels >= 0)
    probs[known, labels[known]] = scores[known]
    return probs


def first_key(arrays: dict[str, Array], names: tuple[str, ...], path: Path) -> Array:
    """Return the array that goes by one of several names."""
    for name in names:
        if name in arrays:
            return arrays[name]
    raise BadFileError(f"{path} has no {' or '.join(names)}; it holds {', '.join(sorted(arrays)) or 'nothing'}")


def npz_files(paths: list[Path]) -> list[Path]:
    """Return the .npz files among paths and in folders, sorted."""
    files = [file for path in paths for file in (sorted(path.rglob("*.npz")) if path.is_dir() else [path])]
    if not files:
        raise BadFileError(f"there is no .npz file in {', '.join(map(str, paths))}")
    return files
