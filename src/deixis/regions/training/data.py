"""What training the `lite` extractor reads: decoded photos, the teachers' boxes and caption words, all from one cache.

The cache is laid down once by :mod:`deixis.regions.training.prepare`; all of it is memory-mapped, so training never
waits on decoding and several processes share one copy.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from deixis.errors import BadFileError
from deixis.geometry import iou
from deixis.regions.training.targets import mirror

THINGS_PER_PHOTO, REGIONS_PER_PHOTO = 16, 14
WHOLE_PRIOR, REGION_PRIOR = 0.15, 0.5


@dataclass(frozen=True, slots=True)
class Photos:
    """One batch of photos of one shape; boxes are shares of the photo, already mirrored where the photo is."""

    pixels: Tensor  # (B, 3, H, W) 0-255
    shape: tuple[int, int]
    sizes: list[tuple[int, int]]
    mirrored: list[bool]
    things: Tensor  # (B, 3549, 5) the teacher's cells, never mirrored
    regions: list[Tensor | None]  # (R, 5) each, never mirrored
    boxes: Tensor  # (N, 4) boxes to describe
    image_of: Tensor  # (N,)
    classes: Tensor  # (N, 80) the teacher's class scores
    priors: Tensor  # (N,) how much each box deserves a word
    words: Tensor  # (B, W) 0 to 1


def photo_key(data: str, photo: str) -> tuple[str, str]:
    """Name of a photo among all datasets: the dataset's folder and the file's stem."""
    return data.rsplit("/", 1)[-1], photo.rsplit(".", 1)[0]


class Corpus:
    """Photos, pseudo-boxes and words of the chosen splits."""

    def __init__(self, folder: Path, splits: tuple[str, ...], limit: int | None = None) -> None:
        try:
            items = json.loads((folder / "items.json").read_text())
            photos = json.loads((folder / "photos.json").read_text())
            self.word_names: list[str] = json.loads((folder / "words.json").read_text())
            lemmas = json.loads((folder / "lemmas.json").read_text())
        except (OSError, ValueError) as error:
            raise BadFileError(f"the training cache {folder} is not complete ({error}); prepare it again") from error
        self.folder = folder
        self.sizes = [(int(w), int(h)) for w, h in photos["sizes"]]
        self.shapes = [(int(w), int(h)) for w, h in photos["shapes"]]
        self.keys = [photo_key(item[0], item[2]) for item in items]
        self._ends = np.cumsum([w * h * 3 for w, h in self.shapes])
        self._pixels = np.memmap(folder / "photos.bin", dtype=np.uint8, mode="r")
        self._cells = np.load(folder / "yolox_cells.npy", mmap_mode="r")
        self._boxes = np.load(folder / "yolox_boxes.npy", mmap_mode="r")
        self._probs = np.load(folder / "yolox_probs.npy", mmap_mode="r")
        self._regions = self._read_regions()
        self.ids = [at for at, item in enumerate(items) if item[1] in splits][:limit]
        self.words = self._word_targets(lemmas)

    def _read_regions(self) -> dict[tuple[str, str], Tensor]:
        found: dict[tuple[str, str], Tensor] = {}
        for path in sorted(self.folder.glob("mobilesam*.jsonl*")):
            opener = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rt") as lines:
                for line in lines:
                    if not line.endswith("\n"):
                        break  # the teacher is still writing
                    row = json.loads(line)
                    width, height = row["size"]
                    boxes = torch.tensor(row["boxes"], dtype=torch.float32).reshape(-1, 5)
                    found[photo_key(row["data"], row["id"])] = boxes / torch.tensor([width, height, width, height, 1.0])
        return found

    def _word_targets(self, lemmas: list[list[list[str]]]) -> Tensor:
        index = {word: at for at, word in enumerate(self.word_names)}
        targets = torch.zeros(len(self.keys), len(index), dtype=torch.uint8)  # captions that use the word
        for row, captions in enumerate(lemmas):
            for caption in captions:
                for lemma in caption:
                    if lemma in index:
                        targets[row, index[lemma]] += 1
        return targets

    def has_regions(self, at: int) -> bool:
        """Whether MobileSAM has looked at this photo."""
        return self.keys[at] in self._regions

    def pixels(self, at: int) -> Tensor:
        """One photo at its input size, (3, H, W) view of channels-last uint8."""
        width, height = self.shapes[at]
        end = int(self._ends[at])
        flat = np.array(self._pixels[end - width * height * 3 : end])
        return torch.from_numpy(flat).view(height, width, 3).permute(2, 0, 1)

    def teacher(self, at: int) -> tuple[Tensor, Tensor]:
        """YOLOX's best boxes (100, 4), as shares of the photo, and their class scores (100, 80)."""
        boxes = torch.from_numpy(self._boxes[at].astype(np.float32))
        return boxes, torch.from_numpy(self._probs[at].astype(np.float32))

    def batches(self, size: int, generator: torch.Generator) -> list[list[int]]:
        """All photos once, in batches of one shape, in random order."""
        by_shape: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place in torch.randperm(len(self.ids), generator=generator).tolist():
            by_shape[self.shapes[self.ids[place]]].append(self.ids[place])
        batches = [rows[at : at + size] for rows in by_shape.values() for at in range(0, len(rows), size)]
        return [batches[at] for at in torch.randperm(len(batches), generator=generator).tolist()]

    def load(self, rows: list[int], generator: torch.Generator | None) -> Photos:
        """Read a batch; with a generator also mirror at random and vary brightness, contrast and colour a little."""
        batch = len(rows)
        mirrored = [False] * batch
        pixels = torch.stack([self.pixels(at) for at in rows]).float()
        if generator is not None:
            mirrored = (torch.rand(batch, generator=generator) < 0.5).tolist()
            pixels = torch.stack([p.flip(-1) if m else p for p, m in zip(pixels, mirrored, strict=True)])
            tint = 1 + 0.3 * (torch.rand(batch, 1, 1, 1, generator=generator) - 0.5)
            tint = tint * (1 + 0.1 * (torch.rand(batch, 3, 1, 1, generator=generator) - 0.5))
            shift = 30 * (torch.rand(batch, 1, 1, 1, generator=generator) - 0.5)
            pixels = (pixels * tint + shift).clamp(0, 255)
        things = torch.from_numpy(np.stack([self._cells[at] for at in rows]).astype(np.float32))
        regions = [self._regions.get(self.keys[at]) for at in rows]
        boxes, classes, priors, image_of = [], [], [], []
        for row, at in enumerate(rows):
            box, target, prior = self._described(at, regions[row])
            boxes.append(mirror(box) if mirrored[row] else box)
            classes.append(target)
            priors.append(prior)
            image_of.append(torch.full((len(box),), row))
        words = (self.words[rows].float() * 0.6).clamp(max=1.0)
        return Photos(
            pixels.contiguous(memory_format=torch.channels_last),
            self.shapes[rows[0]],
            [self.sizes[at] for at in rows],
            mirrored,
            things,
            regions,
            torch.cat(boxes),
            torch.cat(image_of),
            torch.cat(classes),
            torch.cat(priors),
            words,
        )

    def _described(self, at: int, regions: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Boxes worth describing: the teachers' best and the whole photo; their class targets and priors."""
        boxes, probs = self.teacher(at)
        count = THINGS_PER_PHOTO if regions is not None else THINGS_PER_PHOTO + REGIONS_PER_PHOTO
        boxes, probs = boxes[:count], probs[:count]
        priors = probs.amax(1).clamp(min=0.003).sqrt()
        if regions is not None and len(regions):
            extra = regions[:REGIONS_PER_PHOTO]
            boxes = torch.cat([boxes, extra[:, :4]])
            probs = torch.cat([probs, nearest_classes(extra[:, :4], boxes[:count], probs)])
            priors = torch.cat([priors, extra[:, 4].clamp(max=1) * REGION_PRIOR])
        whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]])
        boxes = torch.cat([boxes, whole])
        probs = torch.cat([probs, nearest_classes(whole, boxes[:count], probs[:count])])
        return boxes, probs, torch.cat([priors, torch.tensor([WHOLE_PRIOR])])


def nearest_classes(boxes: Tensor, things: Tensor, probs: Tensor, least: float = 0.6) -> Tensor:
    """Class scores of the thing each box coincides with, or none, (N, 80)."""
    best, which = iou(boxes, things).max(1)
    return torch.where((best >= least)[:, None], probs[which], torch.zeros(()))


def endless(corpus: Corpus, size: int, seed: int, rank: int, world: int, start: int) -> Iterator[tuple[int, list[int]]]:
    """Step numbers and this process's batches, the same for the same seed wherever one starts."""
    step, epoch = 0, 0
    while True:
        order = corpus.batches(size, torch.Generator().manual_seed(seed * 1_000 + epoch))
        for at in range(0, len(order) - world + 1, world):
            if step >= start:
                yield step, order[at + rank]
            step += 1
        epoch += 1
