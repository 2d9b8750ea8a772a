"""Features that lie beside the regions: conv maps and global vectors of photos, frame features of clips.

Photos: a folder of ``ID.npy`` or ``ID.npz`` (member ``feat``), (H, W, C) a map and (C,) a vector, as captioning
programs that follow Up-Down write them. Clips: GVD's ``rgb_motion_1d`` holds two files a *video*, ``VIDEO_resnet.npy``
(S, 2048) and ``VIDEO_bn.npy`` (S, 1024), without the leading ``v_`` of the video's name; side by side they are 3,072
numbers a frame, of which GVD reads at most the first 480. A segment has the frames between its times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from deixis.errors import BadFileError
from deixis.reading.arrays import load_npy, load_npz
from deixis.reading.plain import read_json_object
from deixis.regions.imports.raw import Array, RawRegions, first_key

LONGEST = 480
"""Frames of a video that GVD reads."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Folders with features beside the regions, each optional.

    Args:
        maps: Conv maps of photos.
        vectors: Global vectors of photos.
        frames: Frame features of the videos that segments are cut from.
        times: ActivityNet-Entities' annotations (``anet_entities_cleaned_class_thresh50_trainval.json``), which say
            when a segment begins and ends and how long its video is. Without it a segment has all frames of its file.
    """

    maps: Path | None = None
    vectors: Path | None = None
    frames: Path | None = None
    times: Path | None = None
    _segments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, folder in (("maps", self.maps), ("vectors", self.vectors), ("frames", self.frames)):
            if folder is not None and not folder.is_dir():
                raise BadFileError(f"--{what} {folder} is no folder")
        if self.times is not None:
            known = read_json_object(self.times).get("annotations")
            if not isinstance(known, dict):
                raise BadFileError(f"{self.times} has no 'annotations' with the segments of videos")
            self._segments.update(known)

    def add(self, name: str, raw: RawRegions) -> RawRegions:
        """Return the regions of an image with what lies beside them."""
        if self.maps is not None:
            raw = replace(raw, feature_map=_shaped(_array(self.maps, name), 3, name)[None])
        if self.vectors is not None:
            raw = replace(raw, global_features=_shaped(_array(self.vectors, name), 1, name)[None])
        if self.frames is not None:
            raw = replace(raw, timeline=self._timeline(self.frames, name))
        return raw

    def _timeline(self, folder: Path, name: str) -> Array:
        video, _, segment = name.rpartition("_segment_")
        video = video or name
        parts = [folder / Path(f"{video.removeprefix('v_')}_{kind}.npy").name for kind in ("resnet", "bn")]
        if not parts[0].is_file():
            return _shaped(_array(folder, name), 2, name)[:LONGEST]
        rgb, motion = (_shaped(load_npy(part), 2, name) for part in parts)
        if len(rgb) != len(motion):
            raise BadFileError(f"{len(rgb)} frames in {parts[0].name} and {len(motion)} in {parts[1].name}")
        first, last = self._window(video, segment, len(rgb))
        return np.concatenate([rgb[first:last], motion[first:last]], axis=1)

    def _window(self, video: str, segment: str, frames: int) -> tuple[int, int]:
        """Return where the frames of a segment begin and end, at least one of those that are read."""
        most = min(frames, LONGEST)
        if not self._segments:
            return 0, most
        try:
            entry = self._segments[video]
            start, end = sorted(float(time) for time in entry["segments"][str(int(segment))]["timestamps"])
            share = 1 / float(entry["duration"])
            first = min(max(round(frames * start * share), 0), most - 1)
            return first, max(min(round(frames * end * share), most), first + 1)
        except (KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            raise BadFileError(f"{self.times} has no times and duration of segment {segment!r} of {video}") from error


def _array(folder: Path, name: str) -> Array:
    readers: dict[str, Callable[[Path], Array]] = {
        ".npy": load_npy,
        ".npz": lambda path: first_key(load_npz(path), ("feat", "features", "x"), path),
    }
    for suffix, read in readers.items():
        path = folder / Path(f"{name}{suffix}").name
        if path.is_file():
            return read(path)
    raise BadFileError(f"there is no {name}.npy or {name}.npz in {folder}")


def _shaped(array: Array, axes: int, name: str) -> Array:
    if array.ndim != axes or not array.size:
        raise BadFileError(f"features of {name} have the shape {array.shape}, expected {axes} axes")
    return array
