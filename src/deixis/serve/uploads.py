"""What clients send: photos and clips, judged by size and header before they may wait."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from fastapi import UploadFile

from deixis.errors import DeixisError
from deixis.images import image_size
from deixis.serve.limits import MIB, Limits
from deixis.serve.problems import Problem
from deixis.video import CLIP_SUFFIXES, decoding_within, read_clip

# Two headers of photos and one of a clip are read at a time, whatever number of clients sends them.
_PHOTO_HEADERS, _CLIP_HEADERS = anyio.CapacityLimiter(2), anyio.CapacityLimiter(1)
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Characters that show nothing or turn the direction of text around."""


def safe_name(given: str | None, otherwise: str) -> str:
    """Return what an answer calls a file: the last part of its name, without characters that cannot be seen.

    >>> safe_name("../../etc/pass\\x00wd", "photo")
    'passwd'
    """
    last = re.split(r"[\\/]", given or "")[-1]
    return _UNSEEN.sub("", last).strip()[:200] or otherwise


async def read_photo(upload: UploadFile, limits: Limits) -> tuple[bytes, str, int]:
    """Return the bytes of a photo, its name, and its pixels as its header tells them."""
    name = safe_name(upload.filename, "photo")
    if upload.size is not None and upload.size > limits.photo_bytes:
        raise Problem(413, f"{name} has {upload.size:,} bytes; at most {limits.photo_bytes:,} are read")
    data = await upload.read()
    if not data:
        raise Problem(422, f"{name} is empty: there is no photo in it")
    try:
        width, height = await anyio.to_thread.run_sync(image_size, data, limiter=_PHOTO_HEADERS)
    except DeixisError as error:
        raise Problem(422, str(error).replace("the given bytes", name)) from error
    if width * height > limits.pixels:
        raise Problem(413, f"{name} is {width}x{height}; at most {limits.pixels:,} pixels are read: make it smaller")
    return data, name, width * height


@asynccontextmanager
async def clip_file(upload: UploadFile, limits: Limits) -> AsyncIterator[tuple[Path, str]]:
    """Put a clip into a file of ours, check it, and remove it in the end; its sender's name never becomes a path."""
    name = safe_name(upload.filename, "clip")
    if upload.size is not None and upload.size > limits.clip_bytes:
        raise Problem(413, f"{name} has {upload.size:,} bytes; at most {limits.clip_bytes:,} are read")
    suffix = Path(name).suffix.lower()
    folder = Path(await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="deixis-clip-")))
    try:
        path = folder / f"clip{suffix if suffix in CLIP_SUFFIXES else '.mp4'}"
        async with await anyio.open_file(path, "wb") as file:
            while chunk := await upload.read(MIB):
                await file.write(chunk)
        await anyio.to_thread.run_sync(_check_clip, path, name, limits, limiter=_CLIP_HEADERS)
        yield path, name
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_clip(path: Path, name: str, limits: Limits) -> None:
    try:
        with decoding_within(limits.seconds):
            clip = read_clip(path)
    except DeixisError as error:
        raise Problem(422, str(error).replace(str(path), name)) from error
    if clip.size[0] * clip.size[1] > limits.pixels:
        raise Problem(413, f"{name} has frames of {clip.size[0]}x{clip.size[1]}; at most {limits.pixels:,} pixels")
    if clip.duration > limits.clip_length:
        raise Problem(413, f"{name} lasts {clip.duration:.0f} s; at most {limits.clip_length:.0f} s are read: cut it")
