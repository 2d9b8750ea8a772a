"""COCO: captions and instances, plain or gzip, with the published division and Karpathy's.

A folder with ``annotations/captions_SPLIT.json`` and ``instances_SPLIT.json`` (or the files beside the images), or one
such file. Photos lie in ``SPLIT/``, ``images/SPLIT/`` or ``images/``; without photos the captions alone are read.
``dataset_coco.json`` or ``karpathy_*_images.txt`` beside them add the splits ``karpathy-train``, ``-val``, ``-test``;
the JSON holds captions too, of images that no other file gives any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from deixis.data.boxes import usable_box
from deixis.data.dataset import UNKNOWN_ID, BadExampleError, Dataset
from deixis.data.files import DUPLICATE_ID, EMPTY_CAPTION
from deixis.data.images_of import ImageFinder, annotated_size
from deixis.data.karpathy import karpathy_splits
from deixis.data.sentences import plain_sentence
from deixis.errors import BadFileError
from deixis.reading.plain import expect_list, expect_object, read_json
from deixis.types.example import Example, LabelledBox

BROKEN_ANNOTATION = "broken annotation"
NO_SUCH_IMAGE = "annotation of an image that does not exist"
KARPATHY_JSON = "dataset_coco.json"
KARPATHY = "karpathy"
"""Under this name are the images that only Karpathy's JSON knows."""

_FILE = re.compile(r"(?P<kind>captions|instances)_(?P<split>[\w.-]+?)\.json(?:\.gz)?")


@dataclass(slots=True)
class _Image:
    file_name: str
    size: tuple[int, int] | None
    place: str
    captions: list[str] = field(default_factory=list)
    boxes: list[tuple[list[Any], str, str]] = field(default_factory=list)  # x y w h, class, place


class Coco(Dataset):
    """COCO captions with instances as objects; crowds are left out, for a crowd is not one thing."""

    format = "coco"
    names_every_object = True

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        folder = path if path.is_dir() else path.parent
        self._root = folder.parent if folder.name == "annotations" else folder
        self._loaded: dict[str, dict[str, _Image]] = {}
        self._finders: dict[str, ImageFinder] = {}

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """A file of captions or instances, or a folder that has some."""
        if path.is_file():
            return _FILE.fullmatch(path.name) is not None or path.name in (KARPATHY_JSON, f"{KARPATHY_JSON}.gz")
        return any(_annotation_files(path)) or (path / KARPATHY_JSON).is_file()

    @cached_property
    def _files(self) -> Mapping[str, Mapping[str, Path]]:
        """The caption and instance file of each split."""
        found: dict[str, dict[str, Path]] = {}
        for kind, split, file in sorted(_annotation_files(self.path), key=lambda item: (_order(item[1]), item[0])):
            found.setdefault(split, {})[kind] = file
        return found

    @cached_property
    def _karpathy(self) -> Mapping[str, Sequence[str]]:
        return karpathy_splits(self._root, KARPATHY_JSON)

    @property
    def splits(self) -> tuple[str, ...]:
        """The annotation files' own names (``train2017``), then Karpathy's."""
        return (*self._files, *self._karpathy)

    def _ids_of(self, split: str) -> Sequence[str]:
        if split in self._files:
            return tuple(self._split(split))
        return tuple(self._by_name.get(Path(name).stem, _id_in_name(name)) for name in self._karpathy[split])

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return {Path(image.file_name).stem: id for split in self._all for id, image in self._split(split).items()}

    @property
    def _all(self) -> tuple[str, ...]:
        return tuple(self._files) or (KARPATHY,)

    def _read(self, id: str) -> Example:
        found = [(split, image) for split in self._all if (image := self._split(split).get(id)) is not None]
        if self._files and self._karpathy_json is not None and not any(image.captions for _, image in found):
            # COCO's own files are of other splits, or of boxes alone: Karpathy's JSON holds captions too
            known = self._split(KARPATHY).get(id)
            if known is not None and found:
                found[0][1].captions += known.captions
            elif known is not None:
                found = [(KARPATHY, known)]
        if not found:
            raise BadExampleError(UNKNOWN_ID, f"{self.path}: there is no image {id!r}")
        return self._example(id, found[0][1], found[0][0])

    def _example(self, id: str, image: _Image, split: str) -> Example:
        source, size = self._finder(split).source(image.file_name, image.size, image.place)
        objects = []
        for value, label, place in image.boxes:
            corners = value
            if len(value) == 4 and all(isinstance(v, int | float) for v in value):
                x, y, width, height = value
                corners = [x, y, x + width, y + height]
            box = usable_box(corners, image.size, size, self.problems, place)
            if box is not None:
                objects.append(LabelledBox(box, label))
        captions = tuple(plain_sentence(text) for text in image.captions)
        return Example(id, source, size, captions, split if split != KARPATHY else None, tuple(objects))

    def _finder(self, split: str) -> ImageFinder:
        if split not in self._finders:
            self._finders[split] = ImageFinder(self._folders(split), self.problems)
        return self._finders[split]

    def _folders(self, split: str) -> list[Path]:
        names = [split, f"images/{split}", "images", "train2014", "val2014", "images/train2014", "images/val2014"]
        return [self._root / name for name in names]

    def _split(self, split: str) -> dict[str, _Image]:
        if split not in self._loaded:
            images: dict[str, _Image] = {}
            if split == KARPATHY and self._karpathy_json is not None:
                self._load_karpathy(self._karpathy_json, images)
            for kind in ("captions", "instances"):
                file = self._files.get(split, {}).get(kind)
                if file is not None:
                    self._load(file, kind, images)
            self._loaded[split] = images
        return self._loaded[split]

    def _load(self, file: Path, kind: str, images: dict[str, _Image]) -> None:
        data = expect_object(read_json(file), str(file))
        own: dict[str, str] = {}
        for at, item in enumerate(expect_list(data.get("images"), f"{file}: images")):
            self._load_image(item, f"{file}: images[{at}]", images, own)
        classes = _classes(data, file) if kind == "instances" else {}
        for at, item in enumerate(expect_list(data.get("annotations"), f"{file}: annotations")):
            place = f"{file}: annotations[{at}]"
            image = images.get(str(item.get("image_id"))) if isinstance(item, dict) else None
            if not isinstance(item, dict):
                self.problems.note(BROKEN_ANNOTATION, f"{place} should be an object")
            elif image is None:
                self.problems.note(NO_SUCH_IMAGE, f"{place}: image {item.get('image_id')!r}"[:300])
            elif kind == "captions":
                self._add_caption(image, item.get("caption"), f"{place}.caption")
            elif not item.get("iscrowd"):
                value, label = item.get("bbox"), classes.get(str(item.get("category_id")))
                if isinstance(value, list) and label is not None:
                    image.boxes.append((value, label, f"{place}.bbox"))
                else:
                    self.problems.note(BROKEN_ANNOTATION, f"{place}: no bbox, or of an unknown category")

    def _load_image(self, item: Any, place: str, images: dict[str, _Image], own: dict[str, str]) -> None:
        id = item.get("id") if isinstance(item, dict) else None
        name = item.get("file_name") if isinstance(item, dict) else None
        if not isinstance(id, int | str) or not isinstance(name, str) or not name:
            self.problems.note(BROKEN_ANNOTATION, f"{place} should have an id and a file_name")
            return
        if own.setdefault(str(id), name) != name or (str(id) in images and images[str(id)].file_name != name):
            other = images[str(id)].file_name
            self.problems.note(DUPLICATE_ID, f"{place}: {name} has the id {id} of {other}")
        images.setdefault(str(id), _Image(name, annotated_size(item.get("width"), item.get("height")), place))

    def _add_caption(self, image: _Image, text: Any, place: str) -> None:
        if isinstance(text, str) and text.strip():
            image.captions.append(text)
        else:
            self.problems.note(
                EMPTY_CAPTION if text in ("", None) or isinstance(text, str) else BROKEN_ANNOTATION, place
            )

    @cached_property
    def _karpathy_json(self) -> Path | None:
        """Karpathy's own file, where it lies beside."""
        places = (
            self._root / KARPATHY_JSON,
            self._root / "annotations" / KARPATHY_JSON,
            self._root / f"{KARPATHY_JSON}.gz",
        )
        return next((path for path in places if path.is_file()), None)

    def _load_karpathy(self, file: Path, images: dict[str, _Image]) -> None:
        """Read Karpathy's JSON itself where COCO's own files are absent: it holds the captions too."""
        data = expect_object(read_json(file), str(file))
        for at, item in enumerate(expect_list(data.get("images"), f"{file}: images")):
            place = f"{file}: images[{at}]"
            entry = expect_object(item, place)
            name = entry.get("filename")
            if not isinstance(name, str):
                raise BadFileError(f"{place}.filename should be text")
            id = str(entry.get("cocoid", _id_in_name(name)))
            if id in images:
                self.problems.note(DUPLICATE_ID, f"{place}: {name} has the id {id} of {images[id].file_name}")
                continue
            image = images[id] = _Image(name, None, place)
            for nth, sentence in enumerate(expect_list(entry.get("sentences"), f"{place}.sentences")):
                raw = sentence.get("raw") if isinstance(sentence, dict) else None
                self._add_caption(image, raw, f"{place}.sentences[{nth}].raw")


def _annotation_files(path: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield kind, split and path of the caption and instance files of a folder, or of the one file given."""
    if path.is_file():
        names = [path]
    else:
        names = [
            file for folder in (path, path / "annotations") if folder.is_dir() for file in sorted(folder.iterdir())
        ]
    for file in names:
        match = _FILE.fullmatch(file.name)
        if match and file.is_file():
            yield match["kind"], match["split"], file


def _order(split: str) -> tuple[int, str]:
    first = next((at for at, name in enumerate(("train", "val", "test")) if split.startswith(name)), 3)
    return first, split


def _classes(data: dict[str, Any], file: Path) -> dict[str, str]:
    found = {}
    for item in expect_list(data.get("categories", []), f"{file}: categories"):
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            found[str(item.get("id"))] = item["name"]
    return found


def _id_in_name(name: str) -> str:
    """Return the id that COCO writes at the end of its file names, without zeros in front."""
    digits = re.search(r"(\d+)$", Path(name).stem)
    return str(int(digits[1])) if digits else Path(name).stem
