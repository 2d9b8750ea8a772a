"""The region store: a folder of shards from which regions are read by image id, a few microseconds each.

``store.json`` names the extractor (fingerprint, settings), the class and word names, and every shard with its size and
SHA-256; ``index.json`` holds the ids in order. Shards are mapped, never loaded, so opening reads only the ids, and any
number of processes read at once. A store of more shards than a process may have files maps those it used last.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from deixis.errors import BadFileError, DeixisError
from deixis.geometry import scale
from deixis.reading.files import read_bytes
from deixis.reading.plain import (
    expect_count,
    expect_keys,
    expect_list,
    expect_object,
    expect_text,
    expect_texts,
    kind_of,
    parse_json,
    read_json_object,
)
from deixis.regions.store.shards import FIELDS, PER_FRAME, PER_STEP, Array, Shard
from deixis.types import Regions

VERSION = 1
HEADER, INDEX = "store.json", "index.json"

EVERYDAY = ("features", "objectness", "regionness", "class_probs", "global_features", "timeline")
"""What a batch holds unless asked otherwise: neither word distributions nor feature maps."""


@dataclass(frozen=True, slots=True)
class StoreHeader:
    """What ``store.json`` says."""

    fingerprint: str
    settings: Mapping[str, Any]
    class_names: tuple[str, ...] = ()
    word_names: tuple[str, ...] = ()
    widths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Shape of a row of each stored array."""
    shards: tuple[Mapping[str, Any], ...] = ()
    """Name, images, regions, bytes and sha256 of each."""
    failed: tuple[Mapping[str, str], ...] = ()
    """Id and reason of the images that could not be read."""
    index_sha256: str = ""
    version: int = VERSION

    def to_json(self) -> str:
        """Return the text of ``store.json``."""
        return json.dumps(asdict(self), indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read ``store.json`` of a store's folder."""
        if not (path / HEADER).exists():
            unfinished = (path / "job.json").exists()
            way = "run the same 'deixis regions extract' again to finish it" if unfinished else "name a region store"
            what = "an unfinished store" if unfinished else f"not a region store (it has no {HEADER})"
            raise BadFileError(f"{path} is {what}: {way}")
        data = read_json_object(path / HEADER)
        found = data.get("version")
        if found != VERSION:
            raise BadFileError(
                f"{path} is a region store of version {kind_of(found)}, expected {VERSION}: extract it again"
            )
        place = f"{path / HEADER}: "
        expect_keys(data, {item.name for item in fields(cls)}, str(path / HEADER))
        return cls(
            fingerprint=expect_text(data["fingerprint"], f"{place}fingerprint"),
            settings=expect_object(data["settings"], f"{place}settings"),
            class_names=tuple(expect_texts(data["class_names"], f"{place}class_names")),
            word_names=tuple(expect_texts(data["word_names"], f"{place}word_names")),
            widths=_widths(data["widths"], f"{place}widths"),
            shards=tuple(_shards(data["shards"], f"{place}shards")),
            failed=tuple(_failed(data["failed"], f"{place}failed")),
            index_sha256=expect_text(data["index_sha256"], f"{place}index_sha256"),
        )


class RegionStore:
    """Regions by image id. Open with :meth:`open`; send it to other processes freely, each maps the files anew.

    Example:
        >>> store = RegionStore.open("flickr.regions")
        >>> store.get("1000268201").boxes.shape
        torch.Size([101, 4])
        >>> store.batch(["1000268201", "1001773457"], max_regions=36)["features"].shape
        torch.Size([2, 37, 512])
    """

    def __init__(self, path: Path, header: StoreHeader, ids: Sequence[str]) -> None:
        self.path = path
        self.header = header
        self.ids = tuple(ids)
        self._place = {image: at for at, image in enumerate(self.ids)}
        self._starts = np.cumsum([0, *(int(shard["images"]) for shard in header.shards)])
        self._shards: dict[int, Shard] = {}  # the one used last at the end
        self._most_shards = _most_files()

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a store; a shard that is missing or has another size than it should is named and refused."""
        path = Path(path)
        header = StoreHeader.read(path)
        if not (path / INDEX).exists():
            raise BadFileError(f"{path / INDEX} is missing: delete the store and extract it again")
        raw = read_bytes(path / INDEX)
        if hashlib.sha256(raw).hexdigest() != header.index_sha256:
            raise BadFileError(f"{path / INDEX} is damaged (checksum): delete the store and extract it again")
        for shard in header.shards:
            file = path / shard["name"]
            size = file.stat().st_size if file.is_file() else None
            if size != shard["bytes"]:
                found = "missing" if size is None else f"damaged ({size:,} bytes instead of {shard['bytes']:,})"
                raise BadFileError(f"shard {file} is {found}: delete the store and extract or import it again")
        ids = expect_texts(expect_object(parse_json(raw, str(path / INDEX)), str(path / INDEX)).get("ids"), "ids")
        if len(ids) != sum(shard["images"] for shard in header.shards):
            raise BadFileError(f"{path / INDEX} names {len(ids):,} images, the shards hold another number")
        return cls(path, header, ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, image: object) -> bool:
        return image in self._place

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return RegionStore.open, (self.path,)

    @property
    def fingerprint(self) -> str:
        """The extractor these regions come from."""
        return self.header.fingerprint

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the columns of ``class_probs``."""
        return self.header.class_names

    @property
    def word_names(self) -> tuple[str, ...]:
        """Names of the columns of ``word_probs``."""
        return self.header.word_names

    @property
    def fields(self) -> tuple[str, ...]:
        """What is stored beside boxes, frames and sizes."""
        stored = {name.partition(".")[0] for name in self.header.widths}
        return tuple(name for name in FIELDS if name in stored)

    def width(self, name: str) -> int:
        """Return how many numbers a region (or frame) has in a field; 0 where the field is not stored."""
        names = {"class_probs": self.class_names, "word_probs": self.word_names}.get(name, ())
        shape = self.header.widths.get(name, (len(names),) if f"{name}.index" in self.header.widths else (0,))
        return int(np.prod(shape, dtype=np.int64))

    def require(self, fingerprint: str) -> None:
        """Refuse to go on when these regions come from another extractor than the one a model was trained on."""
        if fingerprint != self.fingerprint:
            raise DeixisError(
                f"{self.path} holds regions of {self.fingerprint}, expected {fingerprint}: extract the images again "
                "with that extractor, or use a model trained on these regions"
            )

    def size(self, image: str) -> tuple[int, int]:
        """Return width and height of an image."""
        shard, at = self._find(image)
        width, height = shard.arrays["sizes"][at]
        return int(width), int(height)

    def get(self, image: str, fields: Iterable[str] | None = None, *, size: tuple[int, int] | None = None) -> Regions:
        """Return the regions of one image, in the precision they are stored in.

        Args:
            image: Id of an image or clip segment.
            fields: Which of :data:`FIELDS` to read; all that are stored if None. Features and objectness that are not
                asked for come empty and as zeros.
            size: Width and height in whose pixels boxes are wanted, where the photos that people drew boxes on have
                another size than those the regions were found in.
        """
        shard, at = self._find(image)
        wanted = self._wanted(fields, self.fields)
        boxes = torch.from_numpy(shard.read("boxes", at).copy())  # (N, 4)
        own = self.size(image)
        if size is not None and size != own:
            boxes = scale(boxes, own, size)
        values = {name: torch.from_numpy(self._read(shard, name, at).copy()) for name in wanted}
        values.setdefault("features", boxes.new_zeros(len(boxes), 0, dtype=torch.half))
        values.setdefault("objectness", boxes.new_zeros(len(boxes), dtype=torch.half))
        return Regions(
            boxes=boxes,
            size=size or own,
            fingerprint=self.fingerprint,
            frame=torch.from_numpy(shard.read("frame", at).astype(np.int64)),
            class_names=self.class_names,
            word_names=self.word_names,
            **values,
        )

    def batch(
        self,
        images: Sequence[str],
        fields: Iterable[str] | None = None,
        *,
        max_regions: int | None = None,
        whole: bool = True,
        sizes: Mapping[str, tuple[int, int]] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> dict[str, Tensor]:
        """Return the regions of several images, padded with zeros; keys are those of ``data.batch.RegionBatch``.

        Args:
            images: Ids, in the order of the rows.
            fields: Which of :data:`FIELDS` to read; :data:`EVERYDAY` if None.
            max_regions: Keep so many regions of each frame beside the whole frame (its last region).
            whole: Whether to keep the whole frame, which no detector finds.
            sizes: Width and height of images in whose pixels boxes are wanted, as :meth:`get` takes it.
            dtype: Precision of everything but ``boxes`` and ``frame``.
        """
        wanted = self._wanted(fields, EVERYDAY)
        found = [self._find(image) for image in images]
        rows = [_kept_rows(shard, at, max_regions, whole=whole) for shard, at in found]
        counts = torch.tensor([sum(stretch.stop - stretch.start for stretch in row) for row in rows])
        longest = int(counts.max()) if len(counts) else 0
        out: dict[str, Tensor] = {
            "boxes": self._padded("boxes", found, rows, longest, torch.float32),
            "frame": self._padded("frame", found, rows, longest, torch.int16).long(),
            "sizes": torch.tensor([shard.arrays["sizes"][at].tolist() for shard, at in found]).reshape(-1, 2).to(dtype),
            "mask": torch.arange(longest) < counts[:, None],  # (B, N)
        }
        for row, image in enumerate(images):
            size, own = (sizes or {}).get(image), self.size(image)
            if size is not None and size != own:
                out["boxes"][row] = scale(out["boxes"][row], own, size)
                out["sizes"][row] = torch.tensor(size).to(dtype)
        for name in wanted:
            if name in PER_FRAME or name in PER_STEP:
                stretches = [shard.stretch(name, at) for shard, at in found]
                lengths = [stop - start for start, stop in stretches]
                frames, every = max(lengths, default=0), [[slice(0, length)] for length in lengths]
                out[name] = self._padded(name, found, every, frames, torch.half).to(dtype)
                real = "frame_mask" if name in PER_FRAME else "timeline_mask"
                out[real] = torch.arange(frames) < torch.tensor(lengths)[:, None]  # (B, F)
            else:
                out[name] = self._padded(name, found, rows, longest, torch.half).to(dtype)
        out.setdefault("features", torch.zeros(len(found), longest, 0, dtype=dtype))
        out.setdefault("objectness", torch.zeros(len(found), longest, dtype=dtype))
        return out

    def verify(self) -> list[str]:
        """Read every byte and return what is wrong: one sentence for each damaged shard, none if all is well."""
        wrong = []
        for shard in self.header.shards:
            file = self.path / shard["name"]
            digest = hashlib.sha256()
            with file.open("rb") as stream:
                while block := stream.read(2**22):
                    digest.update(block)
            if digest.hexdigest() != shard["sha256"]:
                wrong.append(f"shard {file} is damaged: its SHA-256 is not the one in {HEADER}")
        return wrong

    def _find(self, image: str) -> tuple[Shard, int]:
        place = self._place.get(image)
        if place is None:
            raise DeixisError(f"{self.path} has no regions of {image!r}; it holds {len(self):,} images: extract them")
        number = int(np.searchsorted(self._starts, place, side="right")) - 1
        shard = self._shards.get(number)
        if shard is None:
            facts = self.header.shards[number]
            shard = Shard.open(self.path / facts["name"])
            alike = {name: shard.width(name) for name in shard.columns} == self.header.widths
            if (
                shard.facts.get("fingerprint") != self.fingerprint
                or len(shard.arrays["sizes"]) != facts["images"]
                or not (alike or not facts["images"])
            ):
                raise BadFileError(f"shard {shard.name} does not belong to this store: extract or import it again")
            while len(self._shards) >= self._most_shards:
                del self._shards[next(iter(self._shards))]
        else:
            del self._shards[number]
        self._shards[number] = shard
        return shard, place - int(self._starts[number])

    def _wanted(self, names: Iterable[str] | None, default: Sequence[str]) -> list[str]:
        if names is None:
            return [name for name in default if name in self.fields]
        wanted = [name for name in names if name not in ("boxes", "frame")]
        for name in wanted:
            if name not in self.fields:
                raise DeixisError(f"{self.path} has no {name!r}; it holds boxes, {', '.join(self.fields)}")
        return wanted

    def _read(self, shard: Shard, name: str, at: int) -> Array:
        """Return one field of one image; sparse distributions are spread out."""
        if name in shard.columns:
            return shard.read(name, at)
        index, value = shard.read(f"{name}.index", at), shard.read(f"{name}.value", at)
        if index.shape != value.shape or index.max(initial=0) >= max(1, self.width(name)):
            raise BadFileError(f"shard {shard.name} is damaged: {name} names columns that there are not: extract again")
        dense = np.zeros((len(index), self.width(name)), dtype=value.dtype)
        np.put_along_axis(dense, index.astype(np.int64), value, 1)
        return dense

    def _padded(
        self,
        name: str,
        found: Sequence[tuple[Shard, int]],
        rows: Sequence[list[slice]],
        longest: int,
        kind: torch.dtype,
    ) -> Tensor:
        shape = self.header.widths.get(name, (self.width(name),))
        padded = torch.zeros(len(found), longest, *shape, dtype=kind)
        view = padded.numpy()
        for at, ((shard, image), stretches) in enumerate(zip(found, rows, strict=True)):
            value = self._read(shard, name, image)
            done = 0
            for stretch in stretches:
                length = stretch.stop - stretch.start
                view[at, done : done + length] = value[stretch]
                done += length
        return padded


def _widths(data: Any, place: str) -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(expect_count(side, f"{place}.{name}") for side in expect_list(shape, f"{place}.{name}"))
        for name, shape in expect_object(data, place).items()
    }


def _shards(data: Any, place: str) -> Iterator[Mapping[str, Any]]:
    for at, shard in enumerate(expect_list(data, place)):
        where = f"{place}[{at}]"
        expect_keys(expect_object(shard, where), {"name", "images", "regions", "bytes", "sha256"}, where)
        for name in ("images", "regions", "bytes"):
            expect_count(shard[name], f"{where}.{name}")
        expect_text(shard["sha256"], f"{where}.sha256")
        name = expect_text(shard["name"], f"{where}.name")
        if Path(name).name != name or name in ("", ".."):
            raise BadFileError(f"{where}.name is {name[:80]!r}, not the name of a file in the store")
        yield shard


def _failed(data: Any, place: str) -> Iterator[Mapping[str, str]]:
    for at, item in enumerate(expect_list(data, place)):
        where = f"{place}[{at}]"
        expect_keys(expect_object(item, where), {"id", "reason"}, where)
        yield {key: expect_text(value, f"{where}.{key}") for key, value in item.items()}


def _most_files() -> int:
    """Return how many shards may be mapped at once: each keeps a file open, and a process may have only so many."""
    try:
        import resource
    except ImportError:  # Windows
        return 256
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(16, min(allowed, 8192) // 2)


def _kept_rows(shard: Shard, at: int, max_regions: int | None, *, whole: bool = True) -> list[slice]:
    """Return which rows of an image to keep, as :meth:`deixis.types.Regions.top` does, in stretches."""
    start, stop = shard.rows(at)
    first, last = shard.frame_rows(at)
    count = stop - start
    most = count if max_regions is None else max_regions
    if whole and count <= most + 1:
        return [slice(0, count)]
    if last - first == 1:
        borders = [0, count]
    else:  # rows are sorted by frame
        borders = np.searchsorted(shard.read("frame", at), np.arange(last - first + 1)).tolist()
    kept = []
    for low, high in itertools.pairwise(borders):
        kept.append(slice(low, min(low + most, max(high - 1, low))))
        kept += [slice(high - 1, high)] if whole and high > low else []
    return kept
