"""One file of a region store: the regions of some images as flat arrays in safetensors, readable in place.

Rows of all images lie one after another; ``region_ends`` and ``frame_ends`` say where each image stops, so reading one
image touches only its own bytes. Features and scores are half precision, boxes stay single: half cannot name the pixels
of a large photo. Wide distributions keep their 16 largest entries (``NAME.index``, ``NAME.value``). Every image has a
CRC-32 per array, checked when the bytes are first touched, so damage is found without reading whole files.
"""

from __future__ import annotations

import json
import math
import mmap
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save
from torch import Tensor

from deixis.atomic import utf8
from deixis.errors import BadFileError, DeixisError
from deixis.reading.plain import expect_count, expect_list, expect_object, parse_json
from deixis.types import Regions

Array = NDArray[Any]

KEPT = 16
"""How many entries of a wide distribution are stored."""
WIDE = 128
"""Distributions over more names than this are stored by their largest entries."""

PER_REGION = ("boxes", "frame", "features", "objectness", "regionness", "class_probs", "word_probs")
PER_FRAME = ("global_features", "feature_map")
PER_STEP = ("timeline",)
FIELDS = tuple(name for name in PER_REGION + PER_FRAME + PER_STEP if name not in ("boxes", "frame"))
"""What a reader may ask for; boxes, frames and sizes always come."""

_STRUCTURE = ("sizes", "region_ends", "frame_ends", "step_ends", "crc")
_ROWS: dict[str, tuple[int, ...]] = {"boxes": (4,), "frame": (), "objectness": (), "regionness": ()}
"""Shapes of one region's part of the arrays that do not depend on the extractor."""
_DTYPES = {"F16": "<f2", "F32": "<f4", "I16": "<i2", "I32": "<i4", "I64": "<i8", "U16": "<u2", "U32": "<u4"}


def encode(images: Sequence[Regions], *, dense: bool = False) -> dict[str, Array]:
    """Return the arrays of a file that holds ``images`` in this order.

    Args:
        images: Regions of one extractor, all with the same optional fields and widths.
        dense: Keep wide distributions whole instead of their largest entries.
    """
    columns: dict[str, list[Array]] = {}
    for regions in images:
        for name, value in _columns(regions, dense).items():
            columns.setdefault(name, []).append(value)
    for name, values in columns.items():
        if len(values) != len(images) or len({value.shape[1:] for value in values}) > 1:
            raise DeixisError(f"regions of one store must agree: {name} is missing or has another shape in some images")
    arrays = {name: np.concatenate(values) for name, values in columns.items()}
    arrays["sizes"] = np.array([regions.size for regions in images], dtype="<i4").reshape(-1, 2)
    arrays["region_ends"] = np.cumsum([len(regions) for regions in images], dtype="<i8")
    arrays["frame_ends"] = np.cumsum([regions.frames for regions in images], dtype="<i8")
    if any(name in columns for name in PER_STEP):
        lengths = [len(regions.timeline) for regions in images if regions.timeline is not None]
        arrays["step_ends"] = np.cumsum(lengths, dtype="<i8")
    arrays["crc"] = np.array(
        [[zlib.crc32(columns[name][row].tobytes()) for name in sorted(columns)] for row in range(len(images))],
        dtype="<u4",
    ).reshape(len(images), len(columns))
    return arrays


def _columns(regions: Regions, dense: bool) -> dict[str, Array]:
    columns: dict[str, Array] = {"boxes": _numpy(regions.boxes, "<f4"), "frame": _numpy(regions.frame, "<i2")}
    for name in FIELDS:
        value: Tensor | None = getattr(regions, name)
        if value is None:
            continue
        half = _numpy(value, "<f2")
        if not np.isfinite(half).all():
            raise DeixisError(f"{name} holds values that are not finite in half precision")
        if name in ("class_probs", "word_probs") and half.shape[1] > WIDE and not dense:
            order = largest(half, KEPT)
            columns[f"{name}.index"] = order.astype("<u2")
            columns[f"{name}.value"] = np.take_along_axis(half, order, 1)
        else:
            columns[name] = half
    if (np.diff(columns["frame"]) < 0).any():
        raise DeixisError("regions of a clip must be sorted by frame")
    if not np.isfinite(columns["boxes"]).all():
        raise DeixisError("boxes hold values that are not finite")
    return columns


def largest(half: Array, count: int) -> Array:
    """Return the columns of the largest entries of each row, the largest first, (N, W) -> (N, count).

    Of equal ones the first comes first, as in a stable sort; but rows of two thousand are not sorted for sixteen.
    """
    bits = (half + np.float16(0)).view(np.uint16)  # there is one zero from here on
    rising = np.where(bits < 0x8000, bits | 0x8000, ~bits).astype(np.uint32)  # in the order of the numbers
    keys = (rising << 16) | (0xFFFF - np.arange(half.shape[1], dtype=np.uint32))
    kept = np.argpartition(keys, -count, axis=1)[:, -count:]
    falling = np.argsort(np.take_along_axis(keys, kept, 1), axis=1)[:, ::-1]
    return np.take_along_axis(kept, falling, 1)


def _numpy(value: Tensor, dtype: str) -> Array:
    single = value.detach().float()
    if dtype == "<f2":  # an overflow to infinity is reported by the caller, with the field's name
        return np.ascontiguousarray(single.half().numpy(force=True))
    return np.ascontiguousarray(single.numpy(force=True)).astype(dtype)


def join(parts: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Return the arrays of several files as those of one file with all their images."""
    filled = [part for part in parts if len(part["sizes"])]
    if not filled:
        return dict(parts[0]) if parts else encode([])
    names = set(filled[0])
    for part in filled:
        if set(part) != names:
            odd = ", ".join(sorted(names ^ set(part)))
            raise DeixisError(f"images of one store must have the same fields; only some have {odd}")
    arrays: dict[str, Array] = {}
    for name in sorted(names):
        values = [part[name] for part in filled]
        if len({value.shape[1:] for value in values}) > 1:
            widths = ", ".join(str(value.shape[1:]) for value in values)
            raise DeixisError(f"images of one store must agree in the shape of {name}, got {widths}")
        if name.endswith("_ends"):
            starts = np.cumsum([0, *(value[-1] for value in values[:-1])])
            values = [value + start for value, start in zip(values, starts, strict=True)]
        arrays[name] = np.concatenate(values)
    return arrays


def pack(arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> bytes:
    """Return the bytes of a safetensors file; the same arrays and facts always give the same bytes."""
    # One metadata key only: safetensors writes several in no fixed order.
    text = utf8(json.dumps(facts, sort_keys=True, ensure_ascii=False)).decode()
    return save(dict(arrays), metadata={"deixis": text})


@dataclass(frozen=True)
class Shard:
    """The arrays of a file, mapped or in memory, and the facts written with them."""

    name: str
    arrays: Mapping[str, Array]
    facts: Mapping[str, Any]
    touched: Array  # (images, arrays) True where the checksum has been compared

    @cached_property
    def columns(self) -> dict[str, int]:
        """The arrays that have checksums, with their columns in ``crc``."""
        return {name: at for at, name in enumerate(sorted(set(self.arrays) - set(_STRUCTURE)))}

    @classmethod
    def open(cls, path: Path) -> Shard:
        """Map a file without reading its rows."""
        try:
            with path.open("rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise BadFileError(f"shard {path} cannot be opened: {error}") from error
        return cls.parse(data, str(path))

    @classmethod
    def parse(cls, data: bytes | mmap.mmap, name: str) -> Shard:
        """Read the header of a file's bytes and lay arrays over the rest, without copying."""
        try:
            length = int.from_bytes(data[:8], "little")
            if length > len(data):
                raise ValueError(f"its header claims {length:,} bytes")
            header = expect_object(parse_json(data[8 : 8 + length], "header"), "header")
            facts = expect_object(parse_json(header.pop("__metadata__")["deixis"], "facts"), "facts")
            arrays = {}
            for key, entry in header.items():
                start, stop = entry["data_offsets"]
                dtype = np.dtype(_DTYPES[entry["dtype"]])
                count = math.prod(expect_count(side, key) for side in expect_list(entry["shape"], key))
                if start + count * dtype.itemsize != stop or 8 + length + stop > len(data):
                    raise ValueError(f"{key} does not fit into the file")
                flat = np.frombuffer(data, dtype, count, 8 + length + start) if count else np.empty(0, dtype)
                arrays[key] = flat.reshape(entry["shape"])
            shard = cls(name, arrays, facts, np.zeros(arrays["crc"].shape, dtype=bool))
            shard._check_structure()
        except (BadFileError, ValueError, LookupError, TypeError, OverflowError, AttributeError) as error:
            raise BadFileError(
                f"shard {name} is damaged ({error}): delete the store and extract or import it again"
            ) from error
        return shard

    def _check_structure(self) -> None:
        count = len(self.arrays["sizes"])
        if self.arrays["sizes"].shape != (count, 2) or self.arrays["crc"].ndim != 2:
            raise ValueError("sizes or checksums have another shape")
        for ends in ("region_ends", "frame_ends", *(("step_ends",) if "step_ends" in self.arrays else ())):
            steps = np.diff(self.arrays[ends], prepend=0)
            if steps.shape != (count,) or (steps < 0).any():
                raise ValueError(f"{ends} does not rise")
        for name in self.columns:
            if len(self.arrays[name]) != (self.stretch(name, count - 1)[1] if count else 0):
                raise ValueError(f"{name} has {len(self.arrays[name])} rows")
            if name in _ROWS and count and self.width(name) != _ROWS[name]:
                raise ValueError(f"a row of {name} has the shape {self.width(name)}")
        if self.arrays["crc"].shape != (count, len(self.columns)):
            raise ValueError("checksums are missing")

    def width(self, name: str) -> tuple[int, ...]:
        """Return the shape of a row of an array."""
        return tuple(self.arrays[name].shape[1:]) if name in self.arrays else ()

    def rows(self, image: int) -> tuple[int, int]:
        """Return where the regions of an image start and stop."""
        ends = self.arrays["region_ends"]
        return (int(ends[image - 1]) if image else 0), int(ends[image])

    def frame_rows(self, image: int) -> tuple[int, int]:
        """Return where the frames of an image start and stop."""
        ends = self.arrays["frame_ends"]
        return (int(ends[image - 1]) if image else 0), int(ends[image])

    def step_rows(self, image: int) -> tuple[int, int]:
        """Return where the timeline of an image starts and stops."""
        ends = self.arrays["step_ends"]
        return (int(ends[image - 1]) if image else 0), int(ends[image])

    def stretch(self, name: str, image: int) -> tuple[int, int]:
        """Return which rows of an array belong to an image."""
        if name in PER_STEP:
            return self.step_rows(image)
        return self.frame_rows(image) if name in PER_FRAME else self.rows(image)

    def read(self, name: str, image: int) -> Array:
        """Return one array of one image, in place; its checksum is compared the first time."""
        start, stop = self.stretch(name, image)
        value: Array = self.arrays[name][start:stop]
        column = self.columns[name]
        if not self.touched[image, column]:
            if zlib.crc32(value.tobytes()) != int(self.arrays["crc"][image, column]):
                raise BadFileError(
                    f"shard {self.name} is damaged (checksum of {name} of image {image}): delete the store and "
                    "extract or import it again"
                )
            self.touched[image, column] = True
        return value

    def check(self) -> None:
        """Compare every checksum."""
        for image in range(len(self.arrays["sizes"])):
            for name in self.columns:
                self.read(name, image)
