"""Writing a region store piece by piece, so that a kill at any moment costs no finished image.

The ids are cut, in the order given, into shards of ``per_shard`` images and these into parts of ``per_part``. A part is
one small file, renamed into place when it is whole; when the last part of a shard is there, its parts are joined into
the shard and deleted. ``job.json`` remembers what is being made: the same job goes on where it stopped, another one is
refused. What the finished folder holds depends on the job alone, never on how often it was interrupted or on the
order in which parts came.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deixis.atomic import utf8, write_bytes
from deixis.errors import BadFileError, DeixisError
from deixis.locks import Lock
from deixis.reading.plain import read_json_object
from deixis.regions.store.reader import HEADER, INDEX, RegionStore, StoreHeader
from deixis.regions.store.shards import Shard, encode, join, pack
from deixis.types import Regions

JOB, PARTS = "job.json", "parts"


@dataclass(frozen=True, slots=True)
class Part:
    """A few finished images: the bytes of their file, and why the others of the part failed."""

    number: int
    data: bytes


def make_part(
    number: int, images: Sequence[tuple[str, Regions | str]], fingerprint: str, *, dense: bool = False
) -> Part:
    """Encode the images of a part, in order; a string instead of regions is the reason why there are none."""
    kept: list[tuple[str, Regions]] = []
    failed: list[dict[str, str]] = []
    for image, regions in images:
        if isinstance(regions, str):
            failed.append({"id": image, "reason": regions})
            continue
        try:
            if regions.fingerprint != fingerprint:
                raise DeixisError(f"its regions come from {regions.fingerprint}, expected {fingerprint}")
            encode([regions], dense=dense)
        except DeixisError as error:
            failed.append({"id": image, "reason": str(error)})
        else:
            kept.append((image, regions))
    facts: dict[str, Any] = {"ids": [image for image, _ in kept], "failed": failed, "fingerprint": fingerprint}
    if kept:  # the names are wanted once per store, but any part may be the first with an image in it
        facts["class_names"], facts["word_names"] = list(kept[0][1].class_names), list(kept[0][1].word_names)
    return Part(number, pack(encode([regions for _, regions in kept], dense=dense), facts))


class StoreWriter:
    """Takes parts in any order and leaves a store. Nothing in the folder is a store until :meth:`finish`."""

    def __init__(
        self,
        path: str | Path,
        ids: Sequence[str],
        fingerprint: str,
        settings: Mapping[str, Any],
        *,
        per_shard: int = 256,
        per_part: int = 4,
    ) -> None:
        if per_shard % per_part:
            raise ValueError(f"a shard of {per_shard} images is not made of whole parts of {per_part}")
        if len(set(ids)) != len(ids):
            twice = next(image for at, image in enumerate(ids) if image in ids[:at])
            raise DeixisError(f"image id {twice!r} occurs twice: ids must differ within a store")
        self.path, self.ids, self.fingerprint = Path(path), tuple(ids), fingerprint
        self.per_shard, self.per_part = per_shard, per_part
        self.settings = dict(settings)
        self.parts = -(-len(ids) // per_part)
        self.shards = -(-len(ids) // per_shard)
        self._lock = self._take_folder()
        try:
            self.finished = self._begin()
            self.done = self._find_done()
        except BaseException:
            self.close()
            raise

    def part_ids(self, number: int) -> tuple[str, ...]:
        """Return the ids of a part."""
        return self.ids[number * self.per_part : (number + 1) * self.per_part]

    @property
    def pending(self) -> list[int]:
        """The parts that are still to be made, in order."""
        return [number for number in range(self.parts) if number not in self.done]

    def add(self, part: Part) -> None:
        """Keep a finished part; joins its shard if it was the last one of it."""
        write_bytes(self._part_file(part.number), part.data)
        self.done.add(part.number)
        shard = part.number * self.per_part // self.per_shard
        if all(number in self.done for number in self._parts_of(shard)):
            self._join_shard(shard)

    def finish(self) -> RegionStore:
        """Write index and header, remove what was only needed on the way, and open the store."""
        if self.finished:
            self.close()
            return RegionStore.open(self.path)
        if self.pending:
            raise DeixisError(f"{self.path} still lacks {len(self.pending)} of {self.parts} parts")
        entries, ids, failed, first = [], [], [], None
        for number in range(self.shards):
            file = self._shard_file(number)
            shard = Shard.open(file)
            ids += shard.facts["ids"]
            failed += shard.facts["failed"]
            if len(shard.arrays["sizes"]) and first is None:
                first = shard
            if first is not None and len(shard.arrays["sizes"]):
                _check_alike(first, shard)
            with file.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            images, size = len(shard.arrays["sizes"]), file.stat().st_size
            regions = shard.rows(images - 1)[1] if images else 0
            entries.append({"name": file.name, "images": images, "regions": regions, "bytes": size, "sha256": digest})
        if first is None:
            reason = f": {failed[0]['id']}: {failed[0]['reason']}" if failed else ""
            raise DeixisError(f"no image could be read{reason}")
        index = utf8(json.dumps({"ids": ids}, ensure_ascii=False))
        header = StoreHeader(
            fingerprint=self.fingerprint,
            settings=self.settings,
            class_names=tuple(first.facts["class_names"]),
            word_names=tuple(first.facts["word_names"]),
            widths={name: tuple(first.arrays[name].shape[1:]) for name in first.columns},
            shards=tuple(entries),
            failed=tuple(failed),
            index_sha256=hashlib.sha256(index).hexdigest(),
        )
        write_bytes(self.path / INDEX, index)
        write_bytes(self.path / HEADER, utf8(header.to_json()))
        self._clean()
        self.close()
        self.finished = True
        return RegionStore.open(self.path)

    def _take_folder(self) -> Lock:
        """Make the folder if there is none, and keep a second writer out for as long as this one lives."""
        if self.path.exists() and not self.path.is_dir():
            raise DeixisError(f"{self.path} is a file: give another folder with -o")
        self.path.mkdir(parents=True, exist_ok=True)
        return Lock(self.path)

    def _begin(self) -> bool:
        """Take up the job in the folder, or lay it down; True if the folder already holds its finished store."""
        listing = hashlib.sha256(json.dumps(self.ids).encode()).hexdigest()
        job = {
            "fingerprint": self.fingerprint,
            "settings": self.settings,
            "images": len(self.ids),
            "ids_sha256": listing,
            "per_shard": self.per_shard,
            "per_part": self.per_part,
        }
        file = self.path / JOB
        if file.is_file():
            self._check_job(file, job)
            finished = (self.path / HEADER).is_file()
            if finished:
                self._clean()
            return finished
        # a job that was killed before it could say what it is leaves no more than these
        foreign = [item.name for item in self.path.iterdir() if not (item.name == PARTS or item.name.startswith("."))]
        if foreign or ((self.path / PARTS).exists() and any((self.path / PARTS).iterdir())):
            raise DeixisError(f"{self.path} exists and is not a region store: give another folder with -o")
        (self.path / PARTS).mkdir(exist_ok=True)
        write_bytes(file, (json.dumps(job, indent=1, sort_keys=True) + "\n").encode())
        return False

    def _check_job(self, file: Path, job: Mapping[str, Any]) -> None:
        """Refuse to go on with a job that is another one."""
        try:
            known = read_json_object(file)
        except BadFileError as error:
            raise BadFileError(f"{file} is damaged: delete {self.path} and start again") from error
        for key, value in job.items():
            if known.get(key) != json.loads(json.dumps(value)):
                raise DeixisError(
                    f"{self.path} was begun with {key} {_short(known.get(key))}, not {_short(value)}: "
                    "give another folder with -o, or delete this one"
                )

    def close(self) -> None:
        """Let another writer in."""
        self._lock.release()

    def _find_done(self) -> set[int]:
        """Return the parts that need not be made again, after throwing away what a crash may have left half."""
        if self.finished:
            return set(range(self.parts))
        (self.path / PARTS).mkdir(exist_ok=True)
        for left in [*self.path.glob(".*.partial"), *(self.path / PARTS).glob(".*.partial")]:
            left.unlink()
        done: set[int] = set()
        for shard in range(self.shards):
            if self._shard_file(shard).is_file():
                done |= set(self._parts_of(shard))
                self._drop_parts(shard)
        for number in range(self.parts):
            file = self._part_file(number)
            if number in done or not file.is_file():
                continue
            try:
                Shard.parse(file.read_bytes(), str(file)).check()
            except BadFileError:  # the machine went down before the bytes reached the disk
                file.unlink()
            else:
                done.add(number)
        self.done = done
        for shard in range(self.shards):
            if not self._shard_file(shard).is_file() and all(number in done for number in self._parts_of(shard)):
                self._join_shard(shard)
        return done

    def _join_shard(self, shard: int) -> None:
        parts = [Shard.open(self._part_file(number)) for number in self._parts_of(shard)]
        facts: dict[str, Any] = {"ids": [], "failed": [], "fingerprint": self.fingerprint}
        for part in parts:
            facts["ids"] += part.facts["ids"]
            facts["failed"] += part.facts["failed"]
            if part.facts["ids"]:
                facts |= {key: part.facts[key] for key in ("class_names", "word_names")}
        write_bytes(self._shard_file(shard), pack(join([part.arrays for part in parts]), facts))
        self._drop_parts(shard)

    def _parts_of(self, shard: int) -> range:
        each = self.per_shard // self.per_part
        return range(shard * each, min((shard + 1) * each, self.parts))

    def _drop_parts(self, shard: int) -> None:
        for number in self._parts_of(shard):
            self._part_file(number).unlink(missing_ok=True)

    def _part_file(self, number: int) -> Path:
        return self.path / PARTS / f"{number:07d}.safetensors"

    def _shard_file(self, number: int) -> Path:
        return self.path / f"{number:05d}.safetensors"

    def _clean(self) -> None:
        shutil.rmtree(self.path / PARTS, ignore_errors=True)


def write_store(
    path: str | Path,
    images: Iterable[tuple[str, Regions | str]],
    ids: Sequence[str],
    fingerprint: str,
    settings: Mapping[str, Any],
    *,
    dense: bool = False,
) -> RegionStore:
    """Write a store from regions that come one by one, in the order of ``ids`` (as imports do)."""
    writer = StoreWriter(path, ids, fingerprint, settings)
    try:
        pending = set(writer.pending)
        waiting: list[tuple[str, Regions | str]] = []
        number = 0
        for item in images:
            waiting.append(item)
            if len(waiting) == len(writer.part_ids(number)):
                if number in pending:
                    writer.add(make_part(number, waiting, fingerprint, dense=dense))
                waiting, number = [], number + 1
        return writer.finish()
    finally:
        writer.close()


def _check_alike(first: Shard, shard: Shard) -> None:
    for name in first.columns.keys() | shard.columns.keys():
        shapes = [part.arrays[name].shape[1:] if name in part.arrays else "nothing" for part in (first, shard)]
        if shapes[0] != shapes[1]:
            raise DeixisError(f"{name} is {shapes[0]} in {first.name} but {shapes[1]} in {shard.name}")
    for key in ("class_names", "word_names"):
        if first.facts[key] != shard.facts[key]:
            raise DeixisError(f"{key} differ between {first.name} and {shard.name}")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."
