"""WebDataset: tar shards whose members share a name up to the first dot (``0001.jpg``, ``0001.json``, ``0001.txt``).

Shards are read in place. Streaming goes shard by shard; random access looks the member up in an index of offsets made
from the headers alone. Nothing is ever unpacked to disk.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path, PurePosixPath

from deixis.data.dataset import UNKNOWN_ID, BadExampleError, Dataset
from deixis.data.files import DUPLICATE_ID, MISSING_IMAGE
from deixis.data.images_of import BROKEN_IMAGE, annotated_size
from deixis.data.random_splits import drawn_split
from deixis.data.records import BROKEN_RECORD, read_record
from deixis.errors import BadFileError
from deixis.images import IMAGE_SUFFIXES, MAX_BYTES, image_size
from deixis.reading.plain import parse_json
from deixis.types.example import Example, ImageFile

BROKEN_SHARD = "broken shard"
UNSAFE_NAME = "unsafe member name"
_MAX_RECORD = 64 * 2**20


@dataclass(slots=True)
class _Sample:
    shard: Path
    members: dict[str, tuple[str, int, int]] = field(default_factory=dict)  # ending -> name, offset, size


class WebDataset(Dataset):
    """Tar shards of images with captions in ``.json`` (``caption``, ``phrases`` ...) or ``.txt``."""

    format = "webdataset"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._indices: dict[Path, dict[str, _Sample]] = {}

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """A ``.tar`` file or a folder that has some."""
        return bool(_shards(path))

    @cached_property
    def _split_shards(self) -> Mapping[str, Sequence[Path]]:
        found: dict[str, list[Path]] = {}
        for shard in _shards(self.path):
            name = re.sub(r"[-_.]?\d+$", "", shard.stem)
            found.setdefault(name or "all", []).append(shard)
        return found

    @property
    def splits(self) -> tuple[str, ...]:
        """The shards' names without their numbers: ``train`` for ``train-000000.tar``."""
        return tuple(self._split_shards)

    def _ids_of(self, split: str) -> Sequence[str]:
        seen: dict[str, None] = {}
        for shard in self._split_shards[split]:
            for id in self._index(shard):
                if id in seen:
                    self._note_repeat(shard, id)
                seen[id] = None
        return tuple(seen)

    def _note_repeat(self, shard: Path, id: str) -> None:
        self.problems.note(DUPLICATE_ID, f"{shard}: {id} is in an earlier shard too")

    def examples(self, split: str | None = None) -> Iterator[Example]:
        """Read shard by shard: nothing is known of a shard before its turn."""
        seen: set[str] = set()
        asked = None if split is None else self.find_split(split)
        part = asked if asked in self.drawn_splits else None
        for name in self.splits if asked is None or part is not None else (asked,):
            for shard in self._split_shards[name]:
                for id, sample in self._index(shard).items():
                    if id in seen:
                        self._note_repeat(shard, id)
                        continue
                    seen.add(id)
                    if part is not None and drawn_split(id) != part:
                        continue
                    try:
                        yield self._example(id, name, sample)
                    except BadExampleError as error:
                        self.problems.note(error.kind, str(error))

    def _read(self, id: str) -> Example:
        for split, shards in self._split_shards.items():
            for shard in shards:
                sample = self._index(shard).get(id)
                if sample is not None:
                    return self._example(id, split, sample)
        raise BadExampleError(UNKNOWN_ID, f"{self.path}: there is no sample {id!r}")

    def _index(self, shard: Path) -> dict[str, _Sample]:
        """Walk the headers of a shard once; a shard cut off in the middle keeps what came before."""
        if shard in self._indices:
            return self._indices[shard]
        found: dict[str, _Sample] = {}
        try:
            length = shard.stat().st_size
            with tarfile.open(shard, "r:") as archive:
                for member in archive:
                    if not member.isreg() or member.issparse():
                        continue
                    if member.offset_data + member.size > length:
                        self.problems.note(BROKEN_SHARD, f"{shard}: cut off inside {member.name!r}"[:300])
                        break
                    self._add(found, shard, member)
        except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, MemoryError) as error:
            # A file that is no archive at all is an error; one damaged further on still gives what came before.
            if not found:
                raise BadFileError(f"{shard} is not a tar archive, or its first header is damaged: {error}") from error
            self.problems.note(BROKEN_SHARD, f"{shard}, after {next(reversed(found))!r}: {error}"[:300])
        self._indices[shard] = found
        return found

    def _add(self, found: dict[str, _Sample], shard: Path, member: tarfile.TarInfo) -> None:
        name = PurePosixPath(member.name)
        if name.is_absolute() or ".." in name.parts:
            self.problems.note(UNSAFE_NAME, f"{shard}: {member.name!r}"[:300])
            return
        base, dot, ending = name.name.partition(".")
        if not dot or not base:
            return
        id = str(name.parent / base)
        sample = found.setdefault(id, _Sample(shard))
        if ending.lower() in sample.members:
            self.problems.note(DUPLICATE_ID, f"{shard}: {member.name!r} comes twice"[:300])
            return
        sample.members[ending.lower()] = (member.name, member.offset_data, member.size)

    def _example(self, id: str, split: str, sample: _Sample) -> Example:
        record = self._record(id, sample)
        place = f"{sample.shard}: {id}"
        size = annotated_size(record.get("width"), record.get("height"))
        ending = next((e for e in sample.members if f".{e.rpartition('.')[2]}" in IMAGE_SUFFIXES), None)
        if ending is None:
            self.problems.note(MISSING_IMAGE, place)
            source = ImageFile(sample.shard / f"{id}.jpg")
        else:
            name, offset, length = sample.members[ending]
            path = sample.shard / name
            source = ImageFile(path, partial(read_member, sample.shard, offset, length))
            try:
                size = image_size(source)
            except BadFileError as error:
                self.problems.note(BROKEN_IMAGE, str(error))
        captions, objects = read_record(record, size, self.problems, place)
        return Example(id, source, size, captions, split, objects)

    def _record(self, id: str, sample: _Sample) -> dict[str, object]:
        """Return the sample's JSON; a ``.txt`` beside it gives the captions, a line each, where the JSON has none."""
        record: dict[str, object] = {}
        try:
            if "json" in sample.members:
                name, offset, length = sample.members["json"]
                value = parse_json(_text(sample.shard, name, offset, length), f"{sample.shard}: {name}")
                if not isinstance(value, dict):
                    raise BadFileError(f"{sample.shard}: {name} should be an object")
                record = value
            if "txt" in sample.members and not any(record.get(key) for key in ("text", "caption", "captions")):
                name, offset, length = sample.members["txt"]
                lines = _text(sample.shard, name, offset, length).splitlines()
                record = record | {"captions": [line for line in lines if line.strip()]}
        except BadFileError as error:
            raise BadExampleError(BROKEN_RECORD, str(error)) from error
        return record


def read_member(shard: Path, offset: int, length: int) -> bytes:
    """Return the bytes of a member at a known place."""
    if length > MAX_BYTES:
        raise BadFileError(f"{shard}: a member of {length:,} bytes; more than {MAX_BYTES:,} are refused")
    try:
        with shard.open("rb") as file:
            file.seek(offset)
            data = file.read(length)
    except OSError as error:
        raise BadFileError(f"{shard} cannot be read: {error}") from error
    if len(data) != length:
        raise BadFileError(f"{shard} is shorter than when it was indexed: has it changed?")
    return data


def _text(shard: Path, name: str, offset: int, length: int) -> str:
    if length > _MAX_RECORD:
        raise BadFileError(f"{shard}: {name} has {length:,} bytes, more than a caption's record can need")
    try:
        return read_member(shard, offset, length).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadFileError(f"{shard}: {name} is not UTF-8 text, at byte {error.start}") from error


def _shards(path: Path) -> list[Path]:
    candidates = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    return [file for file in candidates if file.suffix == ".tar" and file.is_file()]
