"""Photos in every form people have them, and files made to hurt."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from deixis.errors import BadFileError
from deixis.images import image_size, load_image
from deixis.types import ImageFile


def picture(width: int = 12, height: int = 7) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Smooth colours that survive JPEG, different in every corner."""
    x, y = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    return np.stack([200 * x, 200 * y, 100 + 100 * (1 - x)], -1).round().astype(np.uint8)


def encoded(image: Image.Image, format: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=format, **options)
    return buffer.getvalue()


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("format", "off"), [("JPEG", 12), ("PNG", 0), ("WEBP", 12), ("GIF", 40)])
def test_reads_every_format_from_path_bytes_and_archive(tmp_path: Path, format: str, off: int) -> None:
    data = encoded(Image.fromarray(picture(64, 48)), format)
    path = tmp_path / "photo"  # the content counts, not the name
    path.write_bytes(data)
    for source in (path, str(path), data, ImageFile(path), ImageFile(Path("a.tar/b.jpg"), lambda: data)):
        image = load_image(source)
        assert image.mode == "RGB"
        assert image.size == image_size(source) == (64, 48)
        assert np.abs(np.asarray(image).astype(int) - picture(64, 48)).max() <= off


def test_a_gif_gives_its_first_frame() -> None:
    red, blue = (Image.new("RGB", (9, 5), colour) for colour in ("red", "blue"))
    data = encoded(red, "GIF", save_all=True, append_images=[blue])
    assert load_image(data).getpixel((4, 2)) == (255, 0, 0)


# What each EXIF orientation means: the stored row 0 and column 0 are these sides of the scene (EXIF 2.3, 4.6.4).
STORED = {
    1: lambda scene: scene,
    2: lambda scene: scene[:, ::-1],
    3: lambda scene: scene[::-1, ::-1],
    4: lambda scene: scene[::-1],
    5: lambda scene: scene.transpose(1, 0, 2),
    6: lambda scene: scene.transpose(1, 0, 2)[::-1],
    7: lambda scene: scene.transpose(1, 0, 2)[::-1, ::-1],
    8: lambda scene: scene.transpose(1, 0, 2)[:, ::-1],
}


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["PNG", "WEBP"])
def test_exif_orientation_is_applied(orientation: int, format: str) -> None:
    scene = picture()
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if format == "WEBP" else {}
    data = encoded(Image.fromarray(STORED[orientation](scene).copy()), format, exif=exif.tobytes(), **options)
    assert np.array_equal(np.asarray(load_image(data)), scene)
    assert image_size(data) == (12, 7)


def test_jpeg_orientation_and_damaged_exif() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(Image.fromarray(picture(64, 48)), "JPEG", exif=exif.tobytes())
    assert image_size(data) == load_image(data).size == (48, 64)
    assert load_image(data.replace(b"II*\0", b"IIII").replace(b"MM\0*", b"MMMM")).size == (64, 48)


def test_modes_become_rgb() -> None:
    grey = Image.fromarray(np.full((4, 6), 77, np.uint8))
    assert load_image(encoded(grey, "PNG")).getpixel((0, 0)) == (77, 77, 77)
    deep = Image.fromarray(np.full((4, 6), 0x9ABC, np.uint16))
    assert load_image(encoded(deep, "PNG")).getpixel((0, 0)) == (0x9A, 0x9A, 0x9A)
    cmyk = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    red = load_image(encoded(cmyk, "JPEG"))
    assert np.abs(np.asarray(red).astype(int) - (255, 0, 0)).max() <= 4
    bits = Image.fromarray(np.eye(8, dtype=bool))
    assert load_image(encoded(bits, "PNG")).getpixel((3, 3)) == (255, 255, 255)


def test_transparency_is_white() -> None:
    glass = Image.new("RGBA", (4, 4), (255, 0, 0, 0))
    half = Image.new("RGBA", (4, 4), (0, 0, 0, 128))
    assert load_image(encoded(glass, "PNG")).getpixel((1, 1)) == (255, 255, 255)
    assert load_image(encoded(half, "PNG")).getpixel((1, 1)) == (127, 127, 127)
    palette = Image.new("P", (4, 4), 1)
    palette.putpalette([0, 0, 0, 10, 20, 30] + [0] * 762)
    assert load_image(encoded(palette, "PNG")).getpixel((0, 0)) == (10, 20, 30)
    assert load_image(encoded(palette, "PNG", transparency=1)).getpixel((0, 0)) == (255, 255, 255)
    faint = Image.new("LA", (4, 4), (0, 0))
    assert load_image(encoded(faint, "PNG")).getpixel((0, 0)) == (255, 255, 255)


def test_arrays_and_pil_images() -> None:
    scene = picture()
    assert np.array_equal(np.asarray(load_image(scene)), scene)
    assert load_image(np.full((3, 5), 300, np.uint16)).getpixel((0, 0)) == (1, 1, 1)
    assert load_image(scene[..., :1]).mode == "RGB"
    given = Image.fromarray(scene)
    loaded = load_image(given)
    loaded.putpixel((0, 0), (1, 2, 3))
    assert given.getpixel((0, 0)) != (1, 2, 3), "the caller's image stays as it is"
    for bad in (scene.astype(np.float32), scene[0, 0], np.zeros((0, 4, 3), np.uint8)):
        with pytest.raises(BadFileError):
            load_image(bad)


def test_pixel_limit_is_checked_from_the_header() -> None:
    bomb = png_header(30_000, 30_000)
    assert len(bomb) < 100
    with pytest.raises(BadFileError, match="pixels"):
        load_image(bomb)
    with pytest.raises(BadFileError, match=r"12x7.*at most 80 are read"):
        load_image(encoded(Image.fromarray(picture()), "PNG"), max_pixels=80)
    with pytest.raises(BadFileError):
        load_image(picture(), max_pixels=80)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "GIF"])
def test_truncated_files_name_the_file(tmp_path: Path, format: str) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8)
    data = encoded(Image.fromarray(noise), format)
    path = tmp_path / "cut.jpg"
    for share in (0.01, 0.5, 0.9):
        path.write_bytes(data[: int(len(data) * share)])
        with pytest.raises(BadFileError, match=r"cut\.jpg"):
            load_image(path)


def test_what_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.jpg").write_text("hello")
    (tmp_path / "photo.ppm").write_bytes(encoded(Image.fromarray(picture()), "PPM"))
    os.mkfifo(tmp_path / "pipe.jpg")
    for name, message in [
        ("none.jpg", "there is no file"),
        ("empty.jpg", "is empty"),
        ("text.jpg", "is not a JPEG"),
        ("photo.ppm", "is not a JPEG"),
        ("pipe.jpg", "there is no file"),
        ("", "is a folder"),
        ("nul\0.jpg", "cannot be opened|there is no file"),
    ]:
        for read in (load_image, image_size):
            with pytest.raises(BadFileError, match=message):
                read(tmp_path / name)
    with pytest.raises(BadFileError, match="bytes is empty"):
        load_image(b"")


@pytest.mark.parametrize("format", ["TIFF", "BMP", "AVIF"])
def test_less_common_formats(format: str) -> None:
    photo = Image.fromarray(picture(40, 30))
    read = np.asarray(load_image(encoded(photo, format)), dtype=float)
    assert np.abs(read - picture(40, 30)).mean() < (20 if format == "AVIF" else 0.01)
    assert image_size(encoded(photo, format)) == photo.size


BASES = [
    encoded(Image.fromarray(picture(40, 30)), format, **options)
    for format, options in [
        ("JPEG", {}),
        ("PNG", {}),
        ("WEBP", {}),
        ("GIF", {}),
        ("TIFF", {}),
        ("BMP", {}),
        ("JPEG", {"progressive": True}),
    ]
]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(BASES), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=8), st.floats(0.2, 1))
def test_damaged_files_read_or_raise_a_clear_error(base: bytes, edits: list[tuple[float, int]], keep: float) -> None:
    data = bytearray(base[: max(1, int(len(base) * keep))])
    for place, value in edits:
        data[int(place * (len(data) - 1))] = value
    for read in (image_size, lambda source: load_image(source, max_pixels=10**6).size):
        said = None
        try:
            width, height = read(bytes(data))
        except BadFileError as error:
            said = str(error)
        assert (width >= 1 and height >= 1) if said is None else "the given bytes" in said
