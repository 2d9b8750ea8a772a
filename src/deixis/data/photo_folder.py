"""A folder of photos with a file of captions, or with a text file beside each photo: what people have on their disks.

``captions.csv``, ``.tsv``, ``.txt``, ``.json`` or ``.jsonl`` (``caption_tables.py``), or any such file named instead of
the folder; else ``dog.txt`` beside ``dog.jpg``, one caption a line. Photos may lie in subfolders.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from deixis.data.caption_tables import JSONS, TABLES, read_captions
from deixis.data.dataset import UNKNOWN_ID, BadExampleError, Dataset
from deixis.data.files import DUPLICATE_ID, MISSING_IMAGE
from deixis.data.images_of import file_size
from deixis.data.records import read_record
from deixis.errors import BadFileError
from deixis.images import IMAGE_SUFFIXES
from deixis.reading.files import read_text
from deixis.types.example import Example, ImageFile
from deixis.types.sentence import Sentence

NO_CAPTION = "photo without a caption"
_NAMES = tuple(f"captions{ending}" for ending in (*TABLES, *JSONS))
_SPLITS = {"train": "train", "val": "val", "validation": "val", "valid": "val", "dev": "val", "test": "test"}
_LOOKED_AT = 200


class PhotoFolder(Dataset):
    """Photos with their captions; an example's id is the photo's path below the folder."""

    format = "photos"

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """A folder with photos and a file of captions or texts beside them; or that file."""
        if path.is_file():
            return path.suffix in (*TABLES, *JSONS) and next(photos_below(path.parent), None) is not None
        if not path.is_dir():
            return False
        if _captions_file(path) is not None:
            return next(photos_below(path), None) is not None
        found = (photo for _, photo in zip(range(_LOOKED_AT), photos_below(path), strict=False))
        return any(photo.with_suffix(".txt").is_file() for photo in found)

    @cached_property
    def _root(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    @cached_property
    def _files(self) -> Mapping[str, Path]:
        """Every photo by its path below the folder."""
        return {photo.relative_to(self._root).as_posix(): photo for photo in sorted(photos_below(self._root))}

    @cached_property
    def _names(self) -> Mapping[str, str | None]:
        return names_of(self._files)

    @cached_property
    def _rows(self) -> Mapping[str, list[tuple[str, dict[str, Any]]]]:
        """The records of each photo with their places."""
        table = _captions_file(self._root) if self.path.is_dir() else self.path
        rows = read_captions(table, self.problems) if table is not None else list(self._beside())
        found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for place, name, record in rows:
            called = PurePosixPath(name.replace("\\", "/")).as_posix()
            known = self._names.get(called, self._names.get(PurePosixPath(called).name, ""))
            if known:
                found.setdefault(known, []).append((place, record))
            elif known is None:
                self.problems.note(DUPLICATE_ID, f"{place}: several photos are called {name}")
            else:
                self.problems.note(MISSING_IMAGE, f"{place}: {name}")
        for id in self._files:
            if id not in found:
                self.problems.note(NO_CAPTION, str(self._files[id]))
        return found

    def _beside(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for id, photo in self._files.items():
            file = photo.with_suffix(".txt")
            if file.is_file():
                lines = [line.strip() for line in read_text(file).splitlines() if line.strip()]
                yield str(file), id, {"captions": lines}

    def _split_of(self, id: str) -> str:
        """Return the split a row gives, else the one its folder is named for."""
        given = next((str(record["split"]) for _, record in self._rows[id] if record.get("split")), None)
        if given is not None:
            return _SPLITS.get(given.lower(), given)
        folders = (_SPLITS[part.lower()] for part in PurePosixPath(id).parts[:-1] if part.lower() in _SPLITS)
        return next(folders, "all")

    @cached_property
    def _by_split(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for id in sorted(self._rows):
            found.setdefault(self._split_of(id), []).append(id)
        order = [*dict.fromkeys(_SPLITS.values())]
        return dict(sorted(found.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))

    @property
    def splits(self) -> tuple[str, ...]:
        """What the column ``split`` or the folders ``train``, ``val``, ``test`` say; else ``all``."""
        return tuple(self._by_split) or ("all",)

    def _ids_of(self, split: str) -> Sequence[str]:
        return self._by_split.get(split, ())

    def _read(self, id: str) -> Example:
        if id not in self._rows:
            raise BadExampleError(UNKNOWN_ID, f"{self.path}: there is no photo {id!r} with a caption")
        photo = self._files[id]
        size = file_size(photo, None, self.problems)
        captions: list[Sentence] = []
        for place, record in self._rows[id]:
            captions += read_record(record, size, self.problems, place)[0]
        return Example(id, ImageFile(photo), size, tuple(captions), self._split_of(id))


def names_of(ids: Iterable[str]) -> Mapping[str, str | None]:
    """Return photos by what a file may call them: path or bare name, with and without ending; None where two fit."""
    ids = list(ids)
    found: dict[str, str | None] = {}
    for id in ids:
        path = PurePosixPath(id)
        for name in dict.fromkeys((path.name, path.with_suffix("").as_posix(), path.stem)):
            found[name] = None if name in found else id
    return found | {id: id for id in ids}


def _captions_file(folder: Path) -> Path | None:
    return next((folder / name for name in _NAMES if (folder / name).is_file()), None)


def photos_below(folder: Path) -> Iterator[Path]:
    """Yield the photos of a folder and those below, without hidden ones."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: (entry.is_dir(), entry.name))
    except OSError as error:
        raise BadFileError(f"{folder} cannot be read: {error}") from error
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from photos_below(Path(entry.path))
        elif entry.name.lower().endswith(IMAGE_SUFFIXES):
            yield Path(entry.path)
