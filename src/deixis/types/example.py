"""What every dataset reader gives: an image or a stretch of a clip, with its captions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deixis.types.sentence import Box, Sentence


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A photo on disk, or a member of an archive: then ``read`` gives its bytes, ``path`` names archive and member."""

    path: Path
    read: Callable[[], bytes] | None = None


@dataclass(frozen=True, slots=True)
class ClipSegment:
    """Seconds ``start`` to ``end`` of a clip, looked at in ``frames`` frames sampled uniformly."""

    path: Path | None
    """None where a dataset ships annotations without clips."""
    start: float
    end: float
    frames: int = 10


@dataclass(frozen=True, slots=True)
class LabelledBox:
    """A box with its class name or entity id, independent of any caption (COCO instances, Entities chains)."""

    box: Box
    label: str
    frame: int = 0


@dataclass(frozen=True, slots=True)
class Example:
    """One image, or one segment of a clip, with its captions. Boxes are in pixels of ``size``, the file as it is."""

    id: str
    source: ImageFile | ClipSegment
    size: tuple[int, int] | None
    """Width and height, or None where neither the annotation nor a file tells."""
    captions: tuple[Sentence, ...]
    split: str | None = None
    objects: tuple[LabelledBox, ...] = ()
