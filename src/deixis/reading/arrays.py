"""Arrays of npy and npz files: the headers are read first, and only what the file can really hold is allocated."""

from __future__ import annotations

import math
import os
import zipfile
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from deixis.errors import BadFileError
from deixis.reading.files import open_file, unpacked_limit

Array = NDArray[Any]

MAX_ARRAY_BYTES = 256 * 2**20
"""Arrays of one file together: a hundred frames of a hundred regions with 2,048 numbers each take 80 MB."""
MAX_MEMBERS = 1000
_DIRECTORY_BYTES = 2**20
_END, _END_64 = b"PK\x05\x06", b"PK\x06\x07"


class PickledError(BadFileError):
    """An array of objects: only unpickling, which can run code, would read it."""


def load_npz(path: Path) -> dict[str, Array]:
    """Read a .npz file without ever unpickling; members that would need it are left out."""
    with open_file(path) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            _check_directory(file, size)
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                total, most = sum(member.file_size for member in members), min(MAX_ARRAY_BYTES, unpacked_limit(size))
                if len(members) > MAX_MEMBERS or total > most:
                    raise BadFileError(f"{len(members)} arrays of {total:,} bytes; at most {most:,} are unpacked")
                arrays: dict[str, Array] = {}
                for member in members:
                    with archive.open(member) as packed:
                        try:
                            arrays[member.filename.removesuffix(".npy")] = _read_npy(packed, member.file_size)
                        except PickledError:
                            continue
                return arrays
        # zipfile and numpy raise BadZipFile, zlib.error, EOFError, ValueError, struct.error, NotImplementedError …
        except Exception as error:
            raise BadFileError(f"{path} is not a readable npz file: {error}") from error


def load_npy(path: Path) -> Array:
    """Read a .npy file without ever unpickling."""
    with open_file(path) as file:
        try:
            return _read_npy(file, os.fstat(file.fileno()).st_size)
        except Exception as error:
            raise BadFileError(f"{path} is not a readable npy file: {error}") from error


def map_npy(path: Path) -> Array:
    """Map a .npy file into memory, as large as it may be; it must really hold what its header claims."""
    with open_file(path) as file:
        try:
            shape, fortran, dtype = _read_header(file)
            _check_shape(shape, dtype, os.fstat(file.fileno()).st_size - file.tell())
            if not math.prod(shape):
                return np.empty(shape, dtype)
            order: Literal["F", "C"] = "F" if fortran else "C"
            return np.memmap(path, dtype, "r", offset=file.tell(), shape=shape, order=order)
        except Exception as error:
            raise BadFileError(f"{path} is not a readable npy file: {error}") from error


def _check_directory(file: IO[bytes], size: int) -> None:
    """Refuse a zip whose list of members is huge: it would be read whole before the first of them can be counted."""
    file.seek(max(0, size - 42))
    end = file.read(42)
    if end[-22:-18] != _END or end[-42:-38] == _END_64 or int.from_bytes(end[-10:-6], "little") > _DIRECTORY_BYTES:
        raise BadFileError("it does not end as a zip of a few arrays does: it is damaged, or was made by another tool")
    file.seek(0)


def _read_npy(file: IO[bytes], size: int) -> Array:
    """Read one array of a stream of ``size`` bytes."""
    shape, fortran, dtype = _read_header(file)
    length = _check_shape(shape, dtype, min(size, MAX_ARRAY_BYTES))
    data = file.read(length)
    if len(data) != length:
        raise BadFileError(f"an array of shape {shape} is cut off")
    values = np.frombuffer(data, dtype) if length else np.empty(0, dtype)
    return values.reshape(shape, order="F" if fortran else "C")


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read shape, order and kind of an array; those of Python objects are refused."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise BadFileError(f"version {version} of the npy format is not read")
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read_header(file)
    if dtype.hasobject:
        raise PickledError("it holds Python objects, which are never unpickled")
    return shape, fortran, dtype


def _check_shape(shape: tuple[int, ...], dtype: np.dtype[Any], most: int) -> int:
    """Return the bytes of an array, which must not be more than there are."""
    length = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or len(shape) > 8 or length > most:
        raise BadFileError(f"an array of shape {shape} does not fit into {most:,} bytes")
    return length
