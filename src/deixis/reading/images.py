"""What an image file would make a decoder do, counted before a decoder sees it.

A few bytes can ask for much work: a progressive JPEG may go over all of its pixels once for each of thousands of scans,
a header may have millions of empty segments, values of EXIF may all be the same megabyte. Here the segments, chunks and
scans of a file are counted, at the speed of a search for bytes; a file with far more of them than any camera or program
writes is refused.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from mmap import mmap

from deixis.errors import BadFileError

MAX_SCANS = 100
"""Of a JPEG: programs write about ten."""
MAX_SEGMENTS = 5000
"""Of a JPEG: what does not fit into one is cut into pieces of 64 kB, so this is 300 MB of EXIF, XMP and profiles."""
MAX_STRAY_BYTES = 65536
"""Of a JPEG's header: bytes that belong to no segment."""
MAX_CHUNKS = 100_000
"""Of a PNG: programs write its pixels in pieces of 8 kB."""
MAX_BLOCKS = 10_000
"""Of a GIF before its first picture, and of a WebP: an animation has one for each frame."""

Bytes = bytes | mmap

# The byte after 0xFF is a marker, unless it is a stuffed zero or another 0xFF, which only fills.
_MARKER = re.compile(rb"\xff[^\x00\xff]")
_MARKER_IN_SCAN = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_START_OF_SCAN, _END, _APP1 = 0xDA, 0xD9, 0xE1
_ALONE = {0x01, 0xD8, *range(0xD0, 0xD8)}
_PNG = b"\x89PNG\r\n\x1a\n"


def check_image(data: Bytes, name: str, *, header_only: bool = False) -> None:
    """Refuse a file that would keep a decoder busy for long; what is no image is left to the decoder to refuse.

    Args:
        data: The file's bytes.
        name: How messages call it.
        header_only: Look at no more than what is read to learn the image's size.
    """
    head = data[:16]
    checks: tuple[tuple[bool, Callable[[Bytes, bool], None]], ...] = (
        (head.startswith(b"\xff\xd8\xff"), _check_jpeg),
        (head.startswith(_PNG), _check_png),
        (head.startswith((b"GIF87a", b"GIF89a")), _check_gif),
        (head.startswith(b"RIFF") and head[8:12] == b"WEBP", _check_webp),
    )
    for here, check in checks:
        if here:
            try:
                check(data, header_only)
            except BadFileError as error:
                raise BadFileError(f"{name} {error}, which no camera or program writes: save it again") from error


def _check_jpeg(data: Bytes, header_only: bool) -> None:
    segments = scans = stray = 0
    exif = b""
    at = 2
    while found := (_MARKER_IN_SCAN if scans else _MARKER).search(data, at):
        marker, start = data[found.start() + 1], found.start()
        segments += 1
        if segments > MAX_SEGMENTS:
            raise BadFileError(f"has more than {MAX_SEGMENTS:,} segments")
        if not scans:
            stray += start - at
            if stray > MAX_STRAY_BYTES:
                raise BadFileError(f"has more than {MAX_STRAY_BYTES:,} bytes between the segments of its header")
        at = start + 2
        if marker == _END:
            break
        if marker in _ALONE:
            continue
        length = int.from_bytes(data[at : at + 2], "big")
        if marker == _APP1 and not scans and data[at + 2 : at + 8] == b"Exif\0\0":
            exif += data[at + 8 : at + length]
        elif marker == _START_OF_SCAN:
            if not scans and not exif_is_plain(exif):
                raise BadFileError("has EXIF whose values lie over each other")
            scans += 1
            if header_only:
                return
            if scans > MAX_SCANS:
                raise BadFileError(f"has more than {MAX_SCANS} scans")
        at += max(2, length)
    else:
        if not scans and len(data) - at > MAX_STRAY_BYTES:
            raise BadFileError(f"has more than {MAX_STRAY_BYTES:,} bytes between the segments of its header")


def exif_is_plain(exif: bytes) -> bool:
    """Tell whether the values of EXIF fit into it side by side.

    Where they lie over each other, reading multiplies them: 64 kB become 350 MB. Damaged EXIF is plain: what cannot be
    found is not read either.
    """
    exif = exif.removeprefix(b"Exif\0\0")
    order = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if order is None or len(exif) < 8:
        return True
    (first,) = struct.unpack_from(f"{order}I", exif, 4)
    if first + 2 > len(exif):
        return True
    (entries,) = struct.unpack_from(f"{order}H", exif, first)
    sizes = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}
    total = 0
    for at in range(first + 2, min(first + 2 + 12 * entries, len(exif) - 11), 12):
        kind, count = struct.unpack_from(f"{order}2xHI", exif, at)
        size = count * sizes.get(kind, 1)
        total += size if 4 < size <= len(exif) else 0
    return total <= 2 * len(exif)


def _check_png(data: Bytes, header_only: bool) -> None:
    at, size = len(_PNG), len(data)
    for _ in range(MAX_CHUNKS):
        kind = data[at + 4 : at + 8]
        if at + 8 > size or kind == b"IEND" or (header_only and kind == b"IDAT"):
            return
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    raise BadFileError(f"has more than {MAX_CHUNKS:,} chunks")


def _check_webp(data: Bytes, header_only: bool) -> None:
    at, size = 12, len(data)
    for _ in range(MAX_BLOCKS):
        if at + 8 > size:
            return
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        at += 8 + length + length % 2
    raise BadFileError(f"has more than {MAX_BLOCKS:,} chunks")


def _check_gif(data: Bytes, header_only: bool) -> None:
    """Walk over the extensions before the first picture; what comes after it is not read."""
    flags = data[10:11]
    at = 13 + (3 * 2 ** ((flags[0] & 7) + 1) if flags and flags[0] & 0x80 else 0)
    for _ in range(MAX_BLOCKS):
        if data[at : at + 1] != b"!":
            return
        at += 2
        for _ in range(MAX_BLOCKS):
            length = data[at : at + 1]
            at += 1 + (length[0] if length else 0)
            if not length or not length[0]:
                break
        else:
            break
    raise BadFileError(f"has more than {MAX_BLOCKS:,} blocks before its first picture")
