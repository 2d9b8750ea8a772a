"""What training the `lite` extractor reads: photos, boxes of things and regions, caption words.

The cache is laid down once by :mod:`deixis.regions.training.prepare`. Photos are read from where they lie and cropped,
scaled and mirrored as they are read: decoding costs a fiftieth of what learning from a photo does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from deixis.errors import BadFileError
from deixis.images import load_image
from deixis.regions.network.resize import STEP

GROUPS = ("regions", "captions", "boxes")
SQUARE = 1.2  # photos less slender than this count as square
MOST_SLENDER = 2.0
SMALLEST_VISIBLE = 0.4  # share of a box that a crop must leave, else nobody could name it
COCO_ID = re.compile(r"(?:COCO_\w+_)?(\d{12})")


@dataclass(frozen=True, slots=True)
class Photos:
    """One batch of photos of one shape; boxes are shares of the photo as it is shown, cropped and mirrored."""

    pixels: Tensor  # (B, 3, H, W) 0-255
    things: list[Tensor]  # (T, 5) each: box and score
    classes: list[Tensor]  # (T,) each: the class of every thing
    regions: list[Tensor | None]  # (R, 5) each, None where the segmenter has not looked
    words: Tensor  # (B, W) how many captions have the word
    captioned: Tensor  # (B,)

    @property
    def shape(self) -> tuple[int, int]:
        """Width and height of the pixels."""
        return self.pixels.shape[-1], self.pixels.shape[-2]


def photo_key(data: str, photo: str) -> tuple[str, str]:
    """Name of a photo among all datasets: the dataset's folder and the file's stem; COCO's photos by their number."""
    stem = photo.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    number = COCO_ID.fullmatch(stem)
    return ("coco", number[1]) if number else (data.rsplit("/", 1)[-1], stem)


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of different length in one array: those of photo `at` are `values[ends[at - 1] : ends[at]]`."""

    values: NDArray[np.float32]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[NDArray[np.float32]], width: int) -> Ragged:
        """Lay rows end to end."""
        values = np.concatenate([row.reshape(-1, width) for row in rows]).astype(np.float32)
        return cls(values, np.cumsum([len(row.reshape(-1, width)) for row in rows]))

    def __getitem__(self, at: int) -> Tensor:
        first = int(self.ends[at - 1]) if at else 0
        return torch.from_numpy(self.values[first : int(self.ends[at])].copy())

    def counts(self) -> NDArray[np.int64]:
        """How many rows each photo has."""
        return np.diff(self.ends, prepend=0)


class Corpus:
    """The photos of a prepared cache, drawn at random in batches of one shape."""

    def __init__(self, folder: Path) -> None:
        try:
            self.items: list[list[str]] = json.loads((folder / "items.json").read_text())
            self.word_names: list[str] = json.loads((folder / "words.json").read_text())
            with np.load(folder / "corpus.npz") as arrays:
                self.sizes: NDArray[np.int64] = arrays["sizes"]
                self._things = Ragged(arrays["things"], arrays["thing_ends"])  # box, score, class
                self._regions = Ragged(arrays["regions"], arrays["region_ends"])  # box, score
                self._words = Ragged(arrays["words"], arrays["word_ends"])  # word, captions with it
                self._segmented: NDArray[np.bool_] = arrays["segmented"]
                self._captioned: NDArray[np.bool_] = arrays["captioned"]
        except (OSError, ValueError, KeyError) as error:
            raise BadFileError(f"the training cache {folder} is not complete ({error}); prepare it again") from error
        self.paths = [Path(item[2]) for item in self.items]
        self._drawn = self._groups()

    def __len__(self) -> int:
        return len(self.items)

    def _groups(self) -> dict[tuple[str, str], NDArray[np.int64]]:
        aspect = self.sizes[:, 0] / self.sizes[:, 1]
        buckets = {"wide": aspect > SQUARE, "tall": aspect < 1 / SQUARE}
        buckets["square"] = ~(buckets["wide"] | buckets["tall"])
        groups = {"regions": self._segmented, "captions": self._captioned, "boxes": ~self._captioned}
        return {
            (group, bucket): np.flatnonzero(has & of) for group, has in groups.items() for bucket, of in buckets.items()
        }

    def draw(self, counts: Mapping[str, int], generator: torch.Generator) -> list[int]:
        """Draw so many photos of each group, all wide, all tall or all square; wide ones as often as they are many."""
        shares = torch.tensor([float(len(self._drawn["captions", bucket])) for bucket in ("wide", "tall", "square")])
        bucket = ("wide", "tall", "square")[int(torch.multinomial(shares, 1, generator=generator))]
        rows: list[int] = []
        for group, count in counts.items():
            pool = self._drawn[group, bucket]
            if not len(pool):
                pool = self._drawn["captions", bucket]
            rows += pool[torch.randint(len(pool), (count,), generator=generator).numpy()].tolist()
        return rows

    def shape_of(self, rows: Sequence[int], pixels: int) -> tuple[int, int]:
        """Width and height for a batch: about so many pixels, in the shape of its first photo."""
        aspect = float(np.clip(self.sizes[rows[0], 0] / self.sizes[rows[0], 1], 1 / MOST_SLENDER, MOST_SLENDER))
        wide, high = (max(1, round((pixels * ratio) ** 0.5 / STEP)) * STEP for ratio in (aspect, 1 / aspect))
        return wide, high

    def load(self, rows: Sequence[int], shape: tuple[int, int], smallest: float, generator: torch.Generator) -> Photos:
        """Read photos at `shape`, each cropped to at least `smallest` of its area, half of them mirrored."""
        pixels, things, classes, regions = [], [], [], []
        for at in rows:
            crop = self._crop(at, shape, smallest, generator)
            mirrored = bool(torch.rand((), generator=generator) < 0.5)
            pixels.append(_tinted(self._pixels(at, shape, crop, mirrored), generator))
            thing = self._things[at]
            boxes, kept = seen_through(thing[:, :4], crop, mirrored)
            things.append(torch.cat([boxes, thing[kept, 4:5]], 1))
            classes.append(thing[kept, 5].long())
            region = self._regions[at]
            boxes, kept = seen_through(region[:, :4], crop, mirrored)
            regions.append(torch.cat([boxes, region[kept, 4:5]], 1) if self._segmented[at] else None)
        return Photos(
            torch.stack(pixels).contiguous(memory_format=torch.channels_last),
            things,
            classes,
            regions,
            self.said(rows),
            torch.from_numpy(self._captioned[list(rows)].copy()),
        )

    def said(self, rows: Sequence[int]) -> Tensor:
        """How many captions of each photo have each word, (B, W)."""
        words = torch.zeros(len(rows), len(self.word_names))
        for row, at in enumerate(rows):
            said = self._words[at]
            words[row, said[:, 0].long()] = said[:, 1]
        return words

    def things(self, at: int) -> tuple[Tensor, Tensor, Tensor]:
        """The boxes of a photo's things as shares of the photo (T, 4), their scores (T,) and classes (T,)."""
        thing = self._things[at]
        return thing[:, :4], thing[:, 4], thing[:, 5].long()

    def _crop(self, at: int, shape: tuple[int, int], smallest: float, generator: torch.Generator) -> tuple[float, ...]:
        """A window x1 y1 x2 y2, as shares of the photo, whose shape lies half-way to the batch's."""
        area, across, down = torch.rand(3, generator=generator).tolist()
        area = smallest + (1 - smallest) * area
        bend = (shape[0] / shape[1] / (self.sizes[at, 0] / self.sizes[at, 1])) ** 0.5
        wide, high = min(1.0, (area * bend) ** 0.5), min(1.0, (area / bend) ** 0.5)
        left, top = across * (1 - wide), down * (1 - high)
        return left, top, left + wide, top + high

    def _pixels(self, at: int, shape: tuple[int, int], crop: Sequence[float], mirrored: bool) -> Tensor:
        photo = load_image(self.paths[at])
        window = tuple(share * side for share, side in zip(crop, photo.size * 2, strict=True))
        small = np.asarray(photo.resize(shape, Image.Resampling.BILINEAR, box=window))  # type: ignore[arg-type]
        return torch.from_numpy(small[:, ::-1].copy() if mirrored else small.copy()).permute(2, 0, 1).float()


def _tinted(pixels: Tensor, generator: torch.Generator) -> Tensor:
    """Vary brightness, contrast and colour a little."""
    light, shift, *colours = torch.rand(5, generator=generator) - 0.5
    gain = (1 + 0.3 * light) * (1 + 0.1 * torch.stack(colours))[:, None, None]
    tinted: Tensor = (pixels * gain + 30 * shift).clamp(0, 255)
    return tinted


def seen_through(boxes: Tensor, crop: Sequence[float], mirrored: bool) -> tuple[Tensor, Tensor]:
    """Boxes (N, 4) as shares of a crop of the photo, and which of the N are still seen."""
    left, top, right, bottom = crop
    window = boxes.new_tensor([left, top, left, top])
    scale = boxes.new_tensor([right - left, bottom - top] * 2)
    moved = (boxes - window) / scale
    inside = moved.clamp(0, 1)
    area = (moved[:, 2:] - moved[:, :2]).clamp(min=1e-6).prod(1)
    kept = (inside[:, 2:] - inside[:, :2]).clamp(min=0).prod(1) >= SMALLEST_VISIBLE * area
    inside = inside[kept]
    return (mirror(inside) if mirrored else inside), kept


def mirror(boxes: Tensor) -> Tensor:
    """Mirror boxes given as shares of the image left to right."""
    return torch.stack([1 - boxes[..., 2], boxes[..., 1], 1 - boxes[..., 0], boxes[..., 3]], -1)
