"""Laying down the cache that training reads: boxes of things and regions, caption words, sizes of photos.

Teachers write their boxes line by line and go on where they were stopped; everything else is quick, and written whole.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deixis.atomic import whole_file, write_json
from deixis.errors import BadFileError
from deixis.images import image_size, load_image
from deixis.locks import only_writer
from deixis.regions.training.data import Ragged, photo_key
from deixis.regions.training.teachers import MobileSamTeacher, YoloxTeacher, suppress
from deixis.text.caption_words import choose_words, load_tagger, nouns_and_adjectives
from deixis.text.coco_names import COCO_NAMES
from deixis.types import Example, ImageFile

THINGS_KEPT = 40
LOWEST_THING = 0.02  # below this score the detector's box is noise
Progress = Callable[[str, int, int], None]
Rows = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Photo:
    """One photo to learn from: its dataset's name, split and example, and whether its boxes of things are annotated."""

    data: str
    split: str
    example: Example
    annotated: bool

    @property
    def path(self) -> Path:
        """Where the photo lies."""
        if not isinstance(self.example.source, ImageFile):
            raise BadFileError(f"{self.example.id} is a clip; the lite extractor is trained on photos")
        return self.example.source.path

    @property
    def key(self) -> tuple[str, str]:
        """Its name among all datasets."""
        return photo_key(self.data, self.path.name)


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
        photos: In a fixed order.
        folder: The cache; made if need be. A cache of other photos is refused.
        teachers: Folder of the teachers' ONNX files.
        words: How many caption words to choose.
        boxes: MobileSAM's boxes made before (``jsonl`` or ``jsonl.gz``), or None.
        more_boxes: Run MobileSAM on so many photos beside those.
        progress: Called with the part's name, photos done, photos in all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder, f"the training cache {folder}"):
        items = items_of(photos)
        known = folder / "items.json"
        if known.is_file() and json.loads(known.read_text()) != items:
            raise BadFileError(f"{folder} was prepared for other photos; choose another folder or delete it")
        write_json(known, items)
        if not (folder / "words.json").is_file():
            _words(photos, folder, words)
        _find_things(photos, folder, teachers, progress)
        _find_regions(photos, folder, teachers, boxes, more_boxes, progress)
        _assemble(photos, folder, boxes, progress)


def items_of(photos: Sequence[Photo]) -> list[list[str]]:
    """What names the photos of a cache."""
    return [[photo.data, photo.split, str(photo.path)] for photo in photos]


def cache_name(photos: Sequence[Photo]) -> str:
    """A short name that changes with the photos."""
    return "lite-" + hashlib.sha256(json.dumps(items_of(photos)).encode()).hexdigest()[:10]


def _words(photos: Sequence[Photo], folder: Path, count: int) -> None:
    captions = [[caption.text for caption in photo.example.captions] for photo in photos]
    found = iter(nouns_and_adjectives((text for texts in captions for text in texts), load_tagger()))
    lemmas = [[next(found) for _ in texts] for texts in captions]
    write_json(folder / "lemmas.json", lemmas)
    write_json(folder / "words.json", choose_words(lemmas, count))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file of boxes; a last line that was cut off is left out."""
    if not path.is_file():
        return
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as lines:
        yield from (json.loads(line) for line in lines if line.endswith("\n"))


def _mend(path: Path) -> None:
    """Cut off a last line that a kill left half-written, so that what is appended begins a line of its own."""
    if path.is_file():
        whole = path.read_bytes().rfind(b"\n") + 1
        if path.stat().st_size > whole:
            os.truncate(path, whole)  # not written anew: a kill in between would lose the whole lines too


def _find_things(photos: Sequence[Photo], folder: Path, teachers: Path, progress: Progress) -> None:
    """Let the detector look at every photo whose things nobody annotated."""
    path = folder / "things.jsonl"
    _mend(path)
    seen = {tuple(row["key"]) for row in _lines(path)}
    todo = [photo for photo in photos if not photo.annotated and photo.key not in seen]
    if not todo:
        return
    teacher = YoloxTeacher(teachers)
    with path.open("a") as out:
        for done, photo in enumerate(todo):
            image = load_image(photo.path)
            boxes, objectness, classes = teacher.cells(image)
            scores = objectness * classes.max(1)
            best = np.argsort(-scores, kind="stable")[:1500]
            best = best[scores[best] >= LOWEST_THING]
            kept = best[suppress(boxes[best], scores[best], 0.7, THINGS_KEPT)]
            share = boxes[kept] / np.array([image.width, image.height] * 2, dtype=np.float32)
            rows = np.concatenate([share, scores[kept, None], classes[kept].argmax(1)[:, None]], axis=1)
            out.write(json.dumps({"key": photo.key, "boxes": rows.round(4).tolist()}) + "\n")
            progress("things", done + 1, len(todo))


def _segmented(folder: Path, boxes: Path | None) -> dict[tuple[str, str], Rows]:
    """The segmenter's boxes, as shares of the photo, with scores, by photo."""
    found: dict[tuple[str, str], Rows] = {}
    for path in (*([boxes] if boxes else []), folder / "regions.jsonl"):
        for row in _lines(path):
            width, height = row["size"]
            scale = np.array([width, height, width, height, 1.0], dtype=np.float32)
            found[photo_key(row["data"], row["id"])] = np.array(row["boxes"], dtype=np.float32).reshape(-1, 5) / scale
    return found


def _find_regions(
    photos: Sequence[Photo], folder: Path, teachers: Path, boxes: Path | None, more: int, progress: Progress
) -> None:
    """Let the segmenter look at so many more photos, chosen at random among those with captions."""
    if boxes is not None and not boxes.is_file():
        raise BadFileError(f"there is no file of boxes {boxes}")
    path = folder / "regions.jsonl"
    _mend(path)
    given = {photo_key(row["data"], row["id"]) for row in (_lines(boxes) if boxes else ())}
    rest = [photo for photo in photos if photo.example.captions and photo.key not in given]
    chosen = [rest[at] for at in np.random.default_rng(0).permutation(len(rest))[:more].tolist()]
    seen = {photo_key(row["data"], row["id"]) for row in _lines(path)}
    todo = [photo for photo in chosen if photo.key not in seen]
    if not todo:
        return
    teacher = MobileSamTeacher(teachers)
    with path.open("a") as out:
        for done, photo in enumerate(todo):
            image = load_image(photo.path)
            rows = [[round(float(value), 3) for value in row] for row in teacher.boxes(image)]
            line = {"data": photo.data, "id": photo.path.name, "size": list(image.size), "boxes": rows}
            out.write(json.dumps(line) + "\n")
            out.flush()
            progress("regions", done + 1, len(todo))


def _assemble(photos: Sequence[Photo], folder: Path, boxes: Path | None, progress: Progress) -> None:
    """Put everything into arrays, photo by photo."""
    found = {tuple(row["key"]): np.array(row["boxes"], dtype=np.float32) for row in _lines(folder / "things.jsonl")}
    regions = _segmented(folder, boxes)
    sizes = _sizes(photos, folder, progress)
    things = [
        _annotated(photo.example, size) if photo.annotated else found[photo.key]
        for photo, size in zip(photos, sizes, strict=True)
    ]
    nothing = np.zeros((0, 5), dtype=np.float32)
    ragged = {
        "thing": Ragged.of(things, 6),
        "region": Ragged.of([regions.get(photo.key, nothing) for photo in photos], 5),
        "word": Ragged.of(_said(folder), 2),
    }
    arrays: dict[str, Any] = {f"{name}s": rows.values for name, rows in ragged.items()}
    arrays |= {f"{name}_ends": rows.ends for name, rows in ragged.items()}
    arrays["sizes"] = np.array(sizes)
    arrays["segmented"] = np.array([photo.key in regions for photo in photos])
    arrays["captioned"] = np.array([bool(photo.example.captions) for photo in photos])
    with whole_file(folder / "corpus.npz") as partial, partial.open("wb") as out:
        np.savez(out, **arrays)


def _sizes(photos: Sequence[Photo], folder: Path, progress: Progress) -> list[tuple[int, int]]:
    path = folder / "sizes.json"
    if path.is_file():
        return [(width, height) for width, height in json.loads(path.read_text())]
    sizes = []
    for done, photo in enumerate(photos):
        sizes.append(image_size(photo.path))
        progress("sizes", done + 1, len(photos))
    write_json(path, sizes)
    return sizes


def _annotated(example: Example, size: tuple[int, int]) -> Rows:
    """The things a dataset names, largest first: box as shares of the photo, score 1, class."""
    scale = np.array([*size, *size], dtype=np.float32)
    rows = [
        [*(np.array(thing.box, dtype=np.float32) / scale), 1.0, COCO_NAMES.index(thing.label)]
        for thing in example.objects
        if thing.label in COCO_NAMES
    ]
    rows.sort(key=lambda row: -(row[2] - row[0]) * (row[3] - row[1]))
    return np.array(rows, dtype=np.float32).reshape(-1, 6)


def _said(folder: Path) -> list[Rows]:
    """For each photo the words its captions have and how many captions have each."""
    index = {word: at for at, word in enumerate(json.loads((folder / "words.json").read_text()))}
    rows = []
    for captions in json.loads((folder / "lemmas.json").read_text()):
        counts = Counter(index[lemma] for caption in captions for lemma in caption if lemma in index)
        rows.append(np.array(sorted(counts.items()), dtype=np.float32).reshape(-1, 2))
    return rows
