"""ReferItGame, and referring expressions on COCO in plain JSON: every expression is one phrase with one box.

ReferItGame: ``referit_imcrop_bbox_dict.json`` (``"103_4": [x1, y1, x2, y2]``) with the expressions in
``referit_query_dict.json`` (``"103_4": [...]``) or in the game's own ``RealGames.txt``
(``103_4.jpg~expression~x~y``); ``referit_SPLIT_imlist.txt`` for the splits, ``referit_imsize_dict.json`` for sizes,
photos in ``images/``. The files may lie in the subfolders ``metadata/``, ``split/`` and ``ReferitData/``.

RefCOCO-like: ``refs.json`` (a list of ``image_id``, ``ann_id``, ``split``, ``sentences``) and ``instances.json``. The
pickled ``refs(unc).p`` must be turned into JSON first, because a pickle can run anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from deixis.data.boxes import usable_box
from deixis.data.dataset import UNKNOWN_ID, BadExampleError, Dataset
from deixis.data.files import EMPTY_CAPTION, id_list
from deixis.data.images_of import ImageFinder, annotated_size
from deixis.data.sentences import sentence_with_phrases
from deixis.errors import BadFileError
from deixis.reading.files import read_text
from deixis.reading.plain import expect_list, expect_object, read_json
from deixis.types.example import Example, LabelledBox
from deixis.types.sentence import Phrase

BROKEN_EXPRESSION = "broken expression"
NO_BOX = "expression without a box"

_FOLDERS = ("", "metadata", "split", "ReferitData", "data/metadata", "data/split")
_IMAGES = ("images", "ImageCLEF/images", "saiapr_tc-12", "train2014", "images/train2014", "images/mscoco")
_BOXES, _QUERIES, _SIZES = (f"referit_{name}_dict.json" for name in ("imcrop_bbox", "query", "imsize"))
_GAMES = "RealGames.txt"


@dataclass(slots=True)
class _Image:
    file_name: str
    size: tuple[int, int] | None = None
    expressions: list[tuple[str, str, str]] = field(default_factory=list)  # text, object, place
    boxes: dict[str, tuple[Any, str]] = field(default_factory=dict)  # object -> x1 y1 x2 y2, place


class ReferIt(Dataset):
    """Referring expressions; an example is an image with all its expressions as captions of one phrase."""

    format = "referit"

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """A folder with the box dictionary of ReferItGame, or with ``refs.json`` and ``instances.json``."""
        return _find(path, _BOXES) is not None or all((path / n).is_file() for n in ("refs.json", "instances.json"))

    @cached_property
    def _data(self) -> tuple[dict[str, _Image], dict[str, Sequence[str]]]:
        return self._referit() if _find(self.path, _BOXES) is not None else self._refcoco()

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of the image lists, or those the references name; ``all`` without either."""
        return tuple(self._data[1])

    def _ids_of(self, split: str) -> Sequence[str]:
        return self._data[1][split]

    @cached_property
    def _finder(self) -> ImageFinder:
        return ImageFinder([self.path / name for name in _IMAGES], self.problems)

    def _read(self, id: str) -> Example:
        image = self._data[0].get(id)
        if image is None:
            raise BadExampleError(UNKNOWN_ID, f"{self.path}: there is no image {id!r}")
        source, size = self._finder.source(image.file_name, image.size, f"{self.path}: image {id}")
        boxes = {}
        for name, (value, place) in image.boxes.items():
            box = usable_box(value if isinstance(value, list) else [value], image.size, size, self.problems, place)
            if box is not None:
                boxes[name] = box
        captions = []
        for text, name, place in image.expressions:
            own = (boxes[name],) if name in boxes else ()
            if not own:
                self.problems.note(NO_BOX, f"{place}: object {name}")
            phrase = Phrase(0, 0, name, boxes=own, frames=(0,) * len(own))
            captions.append(sentence_with_phrases(text, [(0, len(text), phrase)])[0])
        split = next((name for name, ids in self._split_sets.items() if id in ids), None)
        objects = tuple(LabelledBox(box, name) for name, box in boxes.items())
        return Example(id, source, size, tuple(captions), split, objects)

    @cached_property
    def _split_sets(self) -> dict[str, frozenset[str]]:
        return {name: frozenset(ids) for name, ids in self._data[1].items()}

    def _add(self, image: _Image, text: Any, name: str, place: str) -> None:
        if not isinstance(text, str):
            self.problems.note(BROKEN_EXPRESSION, f"{place} should be text")
        elif not text.strip():
            self.problems.note(EMPTY_CAPTION, place)
        else:
            image.expressions.append((" ".join(text.split()), name, place))

    def _referit(self) -> tuple[dict[str, _Image], dict[str, Sequence[str]]]:
        file = _find(self.path, _BOXES)
        if file is None:
            raise BadFileError(f"{self.path} has no {_BOXES}")
        images: dict[str, _Image] = {}
        for crop, value in expect_object(read_json(file), str(file)).items():
            image = images.setdefault(crop.split("_")[0], _Image(f"{crop.split('_')[0]}.jpg"))
            image.boxes[crop] = (value, f"{file}: {crop}")
        sizes = _find(self.path, _SIZES)
        for id, size in expect_object(read_json(sizes), str(sizes)).items() if sizes else ():
            if id in images and isinstance(size, list) and len(size) == 2:
                images[id].size = annotated_size(size[0], size[1])
        for text, crop, place in self._expressions():
            id = crop.split("_")[0]
            self._add(images.setdefault(id, _Image(f"{id}.jpg")), text, crop, place)
        splits: dict[str, Sequence[str]] = {}
        for name in ("train", "val", "test"):
            listed = _find(self.path, f"referit_{name}_imlist.txt")
            if listed is not None:
                splits[name] = id_list(listed)
        return images, splits or {"all": tuple(images)}

    def _expressions(self) -> list[tuple[Any, str, str]]:
        """Return text, object and place of each expression."""
        queries, games = _find(self.path, _QUERIES), _find(self.path, _GAMES)
        found: list[tuple[Any, str, str]] = []
        if queries is not None:
            for crop, texts in expect_object(read_json(queries), str(queries)).items():
                for at, text in enumerate(expect_list(texts, f"{queries}: {crop}")):
                    found.append((text, crop, f"{queries}: {crop}[{at}]"))
        elif games is not None:
            for number, line in enumerate(read_text(games).split("\n"), 1):
                place = f"{games}, line {number}"
                match = re.fullmatch(r"(\d+_\d+)\.\w+~(.*?)(?:~[^~]*~[^~]*)?", line.strip())
                if match:
                    found.append((match[2], match[1], place))
                elif line.strip():
                    self.problems.note(BROKEN_EXPRESSION, place)
        else:
            raise BadFileError(f"{self.path} has boxes but neither {_QUERIES} nor {_GAMES} with the expressions")
        return found

    def _refcoco(self) -> tuple[dict[str, _Image], dict[str, Sequence[str]]]:
        file, refs = self.path / "instances.json", self.path / "refs.json"
        data = expect_object(read_json(file), str(file))
        images: dict[str, _Image] = {}
        for at, item in enumerate(expect_list(data.get("images"), f"{file}: images")):
            entry = expect_object(item, f"{file}: images[{at}]")
            size = annotated_size(entry.get("width"), entry.get("height"))
            images[str(entry.get("id"))] = _Image(str(entry.get("file_name")), size)
        boxes: dict[str, tuple[Any, str]] = {}
        for at, item in enumerate(expect_list(data.get("annotations"), f"{file}: annotations")):
            entry, value = expect_object(item, f"{file}: annotations[{at}]"), item.get("bbox")
            if isinstance(value, list) and len(value) == 4 and all(isinstance(v, int | float) for v in value):
                value = [value[0], value[1], value[0] + value[2], value[1] + value[3]]
            boxes[str(entry.get("id"))] = (value, f"{file}: annotations[{at}].bbox")
        splits: dict[str, dict[str, None]] = {}
        for at, item in enumerate(expect_list(read_json(refs), str(refs))):
            place = f"{refs}: [{at}]"
            ref = expect_object(item, place)
            id, name = str(ref.get("image_id")), str(ref.get("ann_id"))
            if id not in images:
                self.problems.note(UNKNOWN_ID, f"{place}: image {id}")
                continue
            if name in boxes:
                images[id].boxes[name] = boxes[name]
            splits.setdefault(str(ref.get("split", "all")), {})[id] = None
            for nth, sentence in enumerate(expect_list(ref.get("sentences"), f"{place}.sentences")):
                text = sentence.get("raw", sentence.get("sent")) if isinstance(sentence, dict) else sentence
                self._add(images[id], text, name, f"{place}.sentences[{nth}]")
        return images, {name: tuple(ids) for name, ids in splits.items()}


def _find(path: Path, name: str) -> Path | None:
    return next((file for folder in _FOLDERS if (file := path / folder / name).is_file()), None)
