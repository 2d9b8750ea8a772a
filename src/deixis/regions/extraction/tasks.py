"""The work of extraction, part by part: read a few images, find their regions, encode them; the same on any engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from deixis.defaults import PIXELS_AT_ONCE
from deixis.errors import BadFileError, DeixisError
from deixis.images import load_image
from deixis.regions.lite import PRECISIONS, LiteExtractor, Precision
from deixis.regions.registry import build_extractor
from deixis.regions.store.writer import Part, make_part
from deixis.types import ClipSegment, ImageFile, Regions
from deixis.video import sample_frames

Source = ImageFile | ClipSegment
Pixels = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides the contents of a store, beside the images."""

    extractor: str = "lite"
    max_regions: int = 100
    dense: bool = False
    """Store wide distributions whole instead of their 16 largest entries."""
    feature_map: bool = True
    precision: Precision = "int8"
    """How lite computes (:meth:`deixis.regions.lite.LiteExtractor.computing_in`); answers do as by default."""

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise DeixisError(f"--precision should be one of {', '.join(PRECISIONS)}, got {self.precision!r}")
        if not 1 <= self.max_regions <= 10_000:
            raise DeixisError(f"--max-regions should be 1 to 10000, got {self.max_regions}")


@dataclass(frozen=True, slots=True)
class Task:
    """One part to make. An image is where to find it, its bytes (a member of an archive), or why it cannot be read."""

    number: int
    images: tuple[tuple[str, Source | bytes | BadFileError], ...]


class Worker:
    """An extractor with its settings, in whatever process does the work."""

    def __init__(self, settings: Settings, fingerprint: str, device: str = "cpu") -> None:
        self.settings = settings
        self.extractor = build_extractor(settings.extractor, device=device)
        if self.extractor.fingerprint != fingerprint:
            raise DeixisError(
                f"this worker's {settings.extractor} is {self.extractor.fingerprint}, expected {fingerprint}: "
                "every machine needs the same version of deixis and the same weights"
            )
        if isinstance(self.extractor, LiteExtractor):
            self.extractor.computing_in(settings.precision)

    def __call__(self, task: Task) -> Part:
        """Make one part; an image that cannot be used is noted in it with the reason."""
        found: dict[str, Regions | str] = {}
        for group in self._read(task, found):
            found |= zip([name for name, _ in group], self._extract(group), strict=True)
        images = [(name, found[name]) for name, _ in task.images]
        return make_part(task.number, images, self.extractor.fingerprint, dense=self.settings.dense)

    def _read(self, task: Task, failed: dict[str, Regions | str]) -> Iterator[list[tuple[str, list[Pixels]]]]:
        """Decode the images in groups of bounded size; each is a list of frames, one for a photo."""
        group: list[tuple[str, list[Pixels]]] = []
        pixels = 0
        for name, source in task.images:
            try:
                frames = read_frames(source)
            except DeixisError as error:
                failed[name] = str(error)
                continue
            count = sum(frame.shape[0] * frame.shape[1] for frame in frames)
            if group and pixels + count > PIXELS_AT_ONCE:
                yield group
                group, pixels = [], 0
            group.append((name, frames))
            pixels += count
        if group:
            yield group

    def _extract(self, group: Sequence[tuple[str, list[Pixels]]]) -> list[Regions | str]:
        frames = [frame for _, frames in group for frame in frames]
        try:
            regions = iter(self._finish(self.extractor.extract(frames, max_regions=self.settings.max_regions)))
            return [join_frames([next(regions) for _ in frames]) for _, frames in group]
        except (DeixisError, RuntimeError, ValueError) as error:
            if len(group) == 1:  # this very image is the reason
                return [f"{type(error).__name__}: {error}"]
            return [result for item in group for result in self._extract([item])]

    def _finish(self, found: list[Regions]) -> list[Regions]:
        return found if self.settings.feature_map else [replace(regions, feature_map=None) for regions in found]


def read_frames(source: Source | bytes | BadFileError) -> list[Pixels]:
    """Return the frames of a clip's segment, or the one of a photo, as RGB."""
    if isinstance(source, BadFileError):
        raise source
    if isinstance(source, ClipSegment):
        if source.path is None:
            raise BadFileError("the dataset has no clip for this segment")
        return sample_frames(source.path, source.start, source.end, source.frames)[0]
    return [np.asarray(load_image(source))]


def join_frames(frames: Sequence[Regions]) -> Regions:
    """Return the regions of a clip's frames as those of one clip."""
    if len(frames) == 1:
        return frames[0]
    rows = ("boxes", "features", "objectness", "regionness", "class_probs", "word_probs")
    stacked = (*rows, "global_features", "feature_map")
    joined: dict[str, Any] = {
        name: None if getattr(frames[0], name) is None else torch.cat([getattr(frame, name) for frame in frames])
        for name in stacked
    }
    number = torch.cat([torch.full((len(frame),), at) for at, frame in enumerate(frames)])
    return replace(frames[0], **joined, frame=number)
