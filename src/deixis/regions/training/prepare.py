"""Laying down the cache that training reads: photos at input size, the teachers' boxes, caption words.

Each part is written aside and renamed when whole, and passed over when it is there already: a killed preparation goes
on with the part it was at (the detector's part, the longest, goes on with the photo it was at).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deixis.atomic import whole_file, write_json
from deixis.errors import BadFileError
from deixis.images import image_size, load_image
from deixis.regions.network.caption_words import choose_words, load_tagger, nouns_and_adjectives
from deixis.regions.network.resize import fit, input_size
from deixis.regions.training.data import photo_key
from deixis.regions.training.teachers import MobileSamTeacher, YoloxTeacher, suppress
from deixis.types import Example, ImageFile

BOXES_KEPT = 100
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Photo:
    """One photo to learn from: its dataset's name, split, example."""

    data: str
    split: str
    example: Example

    @property
    def path(self) -> Path:
        """Where the photo lies."""
        if not isinstance(self.example.source, ImageFile):
            raise BadFileError(f"{self.example.id} is a clip; the lite extractor is trained on photos")
        return self.example.source.path


def prepare(
    photos: Sequence[Photo],
    folder: Path,
    teachers: Path,
    words: int,
    boxes: Path | None,
    more_boxes: int,
    progress: Progress,
) -> None:
    """Lay down the cache for these photos.

    Args:
        photos: In a fixed order; words are chosen from the split ``train`` alone.
        folder: The cache; made if need be. A cache of other photos is refused.
        teachers: Folder of the teachers' ONNX files.
        words: How many caption words to choose.
        boxes: MobileSAM's boxes made before (``jsonl`` or ``jsonl.gz``), or None.
        more_boxes: Run MobileSAM on so many photos beside those.
        progress: Called with the part's name, photos done, photos in all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    items = [[photo.data, photo.split, photo.path.name] for photo in photos]
    known = folder / "items.json"
    if known.is_file() and json.loads(known.read_text()) != items:
        raise BadFileError(f"{folder} was prepared for other photos; choose another folder or delete it")
    write_json(known, items)
    if not (folder / "photos.json").is_file():
        _photos(photos, folder, progress)
    if not (folder / "words.json").is_file():
        _words(photos, folder, words)
    _things(photos, folder, teachers, progress)
    if boxes is not None:
        _copy_boxes(boxes, folder)
    if more_boxes:
        _regions(photos, folder, teachers, more_boxes, progress)


def cache_name(items: Sequence[Sequence[str]]) -> str:
    """A short name that changes with the photos."""
    return "lite-" + hashlib.sha256(json.dumps(items).encode()).hexdigest()[:10]


def _photos(photos: Sequence[Photo], folder: Path, progress: Progress) -> None:
    sizes = [image_size(photo.path) for photo in photos]
    shapes = [input_size(*size) for size in sizes]
    ends = np.cumsum([width * height * 3 for width, height in shapes])
    with whole_file(folder / "photos.bin") as partial:
        pixels = np.memmap(partial, dtype=np.uint8, mode="w+", shape=(int(ends[-1]),))
        for at, photo in enumerate(photos):
            fitted = fit(np.asarray(load_image(photo.path)))
            pixels[int(ends[at]) - fitted.size : int(ends[at])] = fitted.reshape(-1)
            progress("photos", at + 1, len(photos))
        pixels.flush()
    write_json(folder / "photos.json", {"sizes": sizes, "shapes": shapes})


def _words(photos: Sequence[Photo], folder: Path, count: int) -> None:
    captions = [[caption.text for caption in photo.example.captions] for photo in photos]
    found = iter(nouns_and_adjectives((text for texts in captions for text in texts), load_tagger()))
    lemmas = [[next(found) for _ in texts] for texts in captions]
    training = [row for row, photo in zip(lemmas, photos, strict=True) if photo.split == "train"]
    write_json(folder / "lemmas.json", lemmas)
    write_json(folder / "words.json", choose_words(training, count))


def _array(path: Path, shape: tuple[int, ...], kind: type[np.generic]) -> Any:
    if path.is_file():
        return np.lib.format.open_memmap(path, mode="r+")
    return np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=shape)


def _things(photos: Sequence[Photo], folder: Path, teachers: Path, progress: Progress) -> None:
    count = len(photos)
    done = _array(folder / "yolox_done.npy", (count,), np.uint8)
    if done.all():
        return
    teacher = YoloxTeacher(teachers)
    cells = _array(folder / "yolox_cells.npy", (count, 3549, 5), np.float16)
    boxes = _array(folder / "yolox_boxes.npy", (count, BOXES_KEPT, 4), np.float16)
    probs = _array(folder / "yolox_probs.npy", (count, BOXES_KEPT, 80), np.float16)
    for at, photo in enumerate(photos):
        if done[at]:
            continue
        image = load_image(photo.path)
        found, objectness, classes = teacher.cells(image)
        scores = objectness * classes.max(1)
        share = found / np.array([image.width, image.height] * 2, dtype=np.float32)
        cells[at] = np.concatenate([share, scores[:, None]], axis=1)
        best = np.argsort(-scores, kind="stable")[:1500]
        kept = best[suppress(found[best], scores[best], 0.7, BOXES_KEPT)]
        boxes[at, : len(kept)] = share[kept]
        probs[at, : len(kept)] = objectness[kept, None] * classes[kept]
        done[at] = 1
        progress("things", at + 1, count)
    for array in (cells, boxes, probs, done):
        array.flush()


def _copy_boxes(source: Path, folder: Path) -> None:
    if not source.is_file():
        raise BadFileError(f"there is no file of boxes {source}")
    name = "mobilesam.jsonl.gz" if source.suffix == ".gz" else "mobilesam.jsonl"
    with whole_file(folder / name) as partial:
        shutil.copyfile(source, partial)


def _regions(photos: Sequence[Photo], folder: Path, teachers: Path, more: int, progress: Progress) -> None:
    seen: set[tuple[str, str]] = set()
    for path in sorted(folder.glob("mobilesam*.jsonl*")):
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt") as lines:
            rows = [json.loads(line) for line in lines if line.endswith("\n")]
        seen |= {photo_key(row["data"], row["id"]) for row in rows}
    todo = [p for p in photos if p.split == "train" and photo_key(p.data, p.path.name) not in seen]
    order = np.random.default_rng(0).permutation(len(todo))[:more]
    teacher = MobileSamTeacher(teachers)
    with (folder / "mobilesam-more.jsonl").open("a") as out:
        for done, at in enumerate(order.tolist()):
            image = load_image(todo[at].path)
            boxes = [[round(float(value), 3) for value in row] for row in teacher.boxes(image)]
            row = {"data": todo[at].data, "id": todo[at].path.name, "size": list(image.size), "boxes": boxes}
            out.write(json.dumps(row) + "\n")
            progress("regions", done + 1, len(order))
