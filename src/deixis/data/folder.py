"""A folder of images with ``metadata.jsonl`` or ``metadata.csv``, as Hugging Face's ImageFolder writes it.

Each line names an image (``file_name``, relative to the metadata file) and its caption (``text``); more in
:func:`deixis.data.records.read_record`. Subfolders with metadata of their own are splits. Several lines about one image
are its several captions.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from deixis.data.dataset import UNKNOWN_ID, BadExampleError, Dataset
from deixis.data.files import DUPLICATE_ID, MISSING_IMAGE
from deixis.data.images_of import annotated_size, file_size
from deixis.data.records import BROKEN_RECORD, read_record
from deixis.errors import BadFileError
from deixis.reading.files import read_text
from deixis.reading.plain import parse_json
from deixis.types.example import Example, ImageFile, LabelledBox
from deixis.types.sentence import Sentence

UNSAFE_NAME = "file name that leaves the folder"
_METADATA = ("metadata.jsonl", "metadata.csv")
_SPLIT_FOLDERS = ("", "train", "validation", "val", "test", "data/train", "data/validation", "data/test")


class Folder(Dataset):
    """Images with their metadata; an example's id is its ``id`` key, or else its split and ``file_name``."""

    format = "folder"

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """A folder with a metadata file, or with subfolders that have one, or the file itself."""
        return bool(_metadata(path))

    @cached_property
    def _files(self) -> Mapping[str, Path]:
        return _metadata(self.path)

    @property
    def splits(self) -> tuple[str, ...]:
        """The subfolders with metadata; ``all`` for one metadata file at the top."""
        return tuple(self._files)

    @cached_property
    def _loaded(self) -> dict[str, dict[str, list[tuple[str, dict[str, Any]]]]]:
        return {}

    def _records(self, split: str) -> dict[str, list[tuple[str, dict[str, Any]]]]:
        """The records of each id with their places."""
        if split not in self._loaded:
            found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
            # Splits often number their files alike, so names count from the top of the dataset.
            prefix = "" if split == "all" else f"{split}/"
            for place, record in self._lines(self._files[split]):
                name = record.get("file_name")
                if not isinstance(name, str) or not name.strip():
                    self.problems.note(BROKEN_RECORD, f"{place}: no file_name")
                    continue
                id = str(record.get("id", f"{prefix}{name}"))
                known = found.setdefault(id, [])
                if known and known[0][1]["file_name"] != name:
                    self.problems.note(DUPLICATE_ID, f"{place}: {name} has the id {id} of {known[0][1]['file_name']}")
                    continue
                known.append((place, record))
            self._loaded[split] = found
        return self._loaded[split]

    def _lines(self, file: Path) -> list[tuple[str, dict[str, Any]]]:
        text = read_text(file)
        if file.suffix == ".csv":
            try:
                rows = list(csv.DictReader(io.StringIO(text), strict=True))
            except csv.Error as error:
                raise BadFileError(f"{file}: broken CSV: {error}") from error
            return [(f"{file}, row {at}", {k: v for k, v in row.items() if k}) for at, row in enumerate(rows, 1)]
        found = []
        for number, line in enumerate(text.split("\n"), 1):
            place = f"{file}, line {number}"
            if line.strip():
                try:
                    record = parse_json(line, place)
                except BadFileError as error:
                    self.problems.note(BROKEN_RECORD, str(error))
                    continue
                if isinstance(record, dict):
                    found.append((place, record))
                else:
                    self.problems.note(BROKEN_RECORD, f"{place} should be an object")
        return found

    def _ids_of(self, split: str) -> Sequence[str]:
        return tuple(self._records(split))

    def _read(self, id: str) -> Example:
        for split in self.splits:
            records = self._records(split).get(id)
            if records:
                return self._example(id, split, records)
        raise BadExampleError(UNKNOWN_ID, f"{self.path}: there is no image {id!r}")

    def _example(self, id: str, split: str, records: Sequence[tuple[str, dict[str, Any]]]) -> Example:
        place, first = records[0]
        name = PurePosixPath(first["file_name"])
        if name.is_absolute() or ".." in name.parts or "\0" in str(name):
            raise BadExampleError(UNSAFE_NAME, f"{place}: {str(name)!r}")
        path = self._files[split].parent / name
        size = annotated_size(first.get("width"), first.get("height"))
        if path.is_file():
            size = file_size(path, size, self.problems)
        else:
            self.problems.note(MISSING_IMAGE, f"{place}: {path}")
        captions: list[Sentence] = []
        objects: list[LabelledBox] = []
        for where, record in records:
            own, boxes = read_record(record, size, self.problems, where)
            captions += own
            objects += boxes
        return Example(id, ImageFile(path), size, tuple(captions), split, tuple(objects))


def _metadata(path: Path) -> dict[str, Path]:
    """Return the metadata file of each split."""
    if path.is_file():
        return {"all": path} if path.name in _METADATA else {}
    found: dict[str, Path] = {}
    for folder in _SPLIT_FOLDERS:
        for name in _METADATA:
            file = path / folder / name
            if file.is_file():
                found.setdefault(Path(folder).name or "all", file)
    return found
