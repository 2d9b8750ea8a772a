"""Files that ask for far more than they hold, made by hand: what the tests, the fuzzer and the soak test send."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib

import numpy as np
from PIL import Image


def segment(marker: int, body: bytes) -> bytes:
    """One segment of a JPEG."""
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def bits(text: str) -> bytes:
    """Entropy-coded bits of a JPEG, filled up with ones and stuffed with zeros."""
    text += "1" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\x00")


def many_scans(side: int, scans: int) -> bytes:
    """A grey progressive JPEG whose every scan says "nothing more" of all blocks in a few bytes (ITU T.81, annex G)."""
    blocks = (-(-side // 8)) ** 2
    head = b"\xff\xd8" + segment(0xDB, b"\x00" + b"\x01" * 64)
    head += segment(0xC2, struct.pack(">BHHB", 8, side, side, 1) + bytes([1, 0x11, 0]))
    head += segment(0xC4, b"\x00" + bytes([1] + [0] * 15) + b"\x00")  # direct current: the code 0 means no change
    head += segment(0xC4, b"\x10" + bytes([1] + [0] * 15) + b"\xe0")  # the others: the code 0 ends 2**14 blocks or more
    first = segment(0xDA, bytes([1, 1, 0, 0, 0, 0])) + bits("0" * blocks)
    runs = "".join("0" + format(2**14 - 1, "014b") for _ in range(-(-blocks // (2**15 - 1))))
    return head + first + (segment(0xDA, bytes([1, 1, 0, 1, 63, 0])) + bits(runs)) * scans + b"\xff\xd9"


def photo(format: str = "JPEG", size: tuple[int, int] = (64, 48), **options: object) -> bytes:
    """A small picture of some colours."""
    ramp = np.linspace(0, 255, size[0] * size[1] * 3).astype(np.uint8).reshape(size[1], size[0], 3)
    file = io.BytesIO()
    Image.fromarray(ramp).save(file, format, **options)
    return file.getvalue()


def many_segments(count: int) -> bytes:
    """A JPEG with empty APP1 segments before its picture."""
    good = photo()
    return good[:2] + b"\xff\xe1\x00\x02" * count + good[2:]


def stray_bytes(count: int) -> bytes:
    """A JPEG with bytes that belong to nothing after its first marker."""
    good = photo()
    return good[:2] + b"\xff\xe1\x00\x02" + b"\x00" * count + good[2:]


def overlapping_exif(entries: int, size: int) -> bytes:
    """A JPEG whose EXIF values are all the same bytes."""
    fields = [struct.pack("<HHII", 1000 + at, 7, size, 0) for at in range(entries)]
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, entries) + b"".join(fields) + b"\0" * size
    good = photo()
    return good[:2] + segment(0xE1, exif[:65533]) + good[2:]


def many_chunks(count: int) -> bytes:
    """A PNG with empty chunks nobody knows before its picture."""
    good = photo("PNG")
    empty = b"\0\0\0\0abCd" + struct.pack(">I", zlib.crc32(b"abCd"))
    return good[:33] + empty * count + good[33:]


def many_blocks(count: int) -> bytes:
    """A GIF with comments of one byte before its picture."""
    good = photo("GIF")
    start = 13 + 3 * 2 ** ((good[10] & 7) + 1)
    return good[:start] + b"!\xfe\x01a\x00" * count + good[start:]


def animated(format: str, side: int, frames: int = 2) -> bytes:
    """An animation of large plain frames, which packs to almost nothing."""
    pictures = [Image.new("RGBA", (side, side), (at, 0, 0, 255)) for at in range(frames)]
    file = io.BytesIO()
    pictures[0].save(file, format, save_all=True, append_images=pictures[1:])
    return file.getvalue()


def npz_of_zeros(numbers: int) -> bytes:
    """An npz whose arrays are zeros: a thousandth of what they take in memory."""
    file = io.BytesIO()
    zeros = np.zeros(numbers, np.float32).reshape(1, -1)
    np.savez_compressed(file, boxes=zeros, features=zeros, size=np.array([640, 480]))
    return file.getvalue()


def npy_that_claims(shape: tuple[int, ...]) -> bytes:
    """An npy whose header says more than follows."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue() + b"\0" * 64


def zip_of(name: str, data: bytes) -> bytes:
    """A zip with one packed member."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return file.getvalue()


def gzip_of_one_line(megabytes: int) -> bytes:
    """Text of one line, over and over."""
    return gzip.compress(b"1.jpg#0\ta dog runs\n" * (megabytes * 2**20 // 19))
