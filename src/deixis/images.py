"""Safe reading of photos, always given as upright RGB: JPEG, PNG, WebP, TIFF, BMP, AVIF, the first frame of a GIF.

HEIC, the form that some phones save, is read where the package pillow-heif is installed (the extra ``heic``).

A file is judged by its header before a single pixel is decoded, so a few bytes that claim a gigantic image cost
nothing, and neither do those that ask for endless work (:mod:`deixis.reading.images`). Whatever is wrong with a file
becomes a :class:`~deixis.errors.BadFileError` that names it.
"""

from __future__ import annotations

import io
import mmap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from deixis.errors import BadFileError, MissingExtraError
from deixis.reading.images import check_image, exif_is_plain
from deixis.types.example import ImageFile

ImageSource = str | Path | bytes | Image.Image | NDArray[Any] | ImageFile

MAX_PIXELS = 80_000_000
"""Larger images are refused unless the caller allows more: 80 megapixels are 240 MB once decoded."""
MAX_BYTES = 512 * 2**20

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".tif", ".tiff", ".bmp", ".avif", ".heic", ".heif")

_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "AVIF", "HEIF")
_HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
"""What stands in the header of a HEIC file, after the word ``ftyp`` (ISO/IEC 23008-12, annex B)."""
_ORIENTATION = 0x0112
_BAND = 256  # rows
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def load_image(source: ImageSource, *, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """Return the image as 8-bit RGB, turned upright by its EXIF tag; transparent parts become white.

    Args:
        source: A path, the bytes of a file, an :class:`ImageFile`, a PIL image, or an array (H, W), (H, W, 3) or
            (H, W, 4) of 8 or 16 bits.
        max_pixels: Images with more pixels than this are refused from their header.

    Raises:
        BadFileError: The file is missing, damaged, too large, or not one of the formats above.
    """
    if isinstance(source, np.ndarray):
        return _from_array(source, max_pixels)
    with _opened(source, max_pixels) as (image, name), _explained(name):
        if image.format == "WEBP":  # its decoder holds four pictures with transparency at a time
            _check_size(image.size, max_pixels // 2, name)
        # Read before converting: a converted image no longer knows how it was held.
        turn = _UPRIGHT.get(_orientation(image))
        image.load()
        _check_size(image.size, max_pixels, name)
        rgb = _to_rgb(image)
        return rgb.transpose(turn) if turn is not None else rgb


def image_size(source: ImageSource) -> tuple[int, int]:
    """Return width and height of the upright image, from the header alone: no pixel is decoded."""
    if isinstance(source, np.ndarray):
        _check_array(source)
        return int(source.shape[1]), int(source.shape[0])
    with _opened(source, None, header_only=True) as (image, name), _explained(name):
        width, height = image.size
        return (height, width) if _orientation(image) >= 5 else (width, height)


def source_name(source: ImageSource) -> str:
    """Return how messages call a source: its path where it has one."""
    if isinstance(source, ImageFile):
        return str(source.path)
    if isinstance(source, str | Path):
        return str(source)
    if isinstance(source, Image.Image):
        return str(getattr(source, "filename", "") or "the given image")
    return f"the given {'bytes' if isinstance(source, bytes) else 'array'}"


@contextmanager
def _opened(
    source: ImageSource, max_pixels: int | None, *, header_only: bool = False
) -> Iterator[tuple[Image.Image, str]]:
    """Open the header of a source, check what it claims, and close the file afterwards."""
    name = source_name(source)
    if isinstance(source, Image.Image):
        _check_size(source.size, max_pixels, name)
        yield source, name
        return
    if isinstance(source, np.ndarray):
        raise TypeError("arrays have no header to open")
    file = _file(source, name)
    try:
        if _is_heic(file):
            _learn_heic(name)
        _check_work(file, name, header_only)
        with _explained(name), warnings.catch_warnings():
            # The limit is ours: Pillow only warns, and about another one.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(file, formats=[known for known in _FORMATS if known in _known_formats()])
        _check_size(image.size, max_pixels, name)
        yield image, name
    finally:
        file.close()


def _file(source: str | Path | bytes | ImageFile, name: str) -> IO[bytes]:
    data: bytes | None = None
    if isinstance(source, bytes):
        data = source
    elif isinstance(source, ImageFile) and source.read is not None:
        data = source.read()
    if data is not None:
        if not data:
            raise BadFileError(f"{name} is empty: there is no image in it")
        return io.BytesIO(data)
    path = source.path if isinstance(source, ImageFile) else Path(str(source))
    try:
        if not path.is_file():  # also keeps us from waiting on a pipe
            raise BadFileError(f"{name} is a folder, not an image" if path.is_dir() else f"there is no file {name}")
        size = path.stat().st_size
        if size == 0:
            raise BadFileError(f"{name} is empty: there is no image in it")
        if size > MAX_BYTES:
            raise BadFileError(f"{name} has {size:,} bytes; images of more than {MAX_BYTES:,} bytes are refused")
        return path.open("rb")
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise BadFileError(f"{name} cannot be opened: {error}") from error


def _is_heic(file: IO[bytes]) -> bool:
    """Whether a file says that it is HEIC; AVIF lies in the same container, under brands of its own."""
    head = file.read(12)
    file.seek(0)
    return head[4:8] == b"ftyp" and head[8:] in _HEIC_BRANDS


def _learn_heic(name: str) -> None:
    """Let Pillow read HEIC, through the one package that can."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError as error:
        raise MissingExtraError("pillow-heif", "heic", f"reading {name}, a HEIC image,") from error
    register_heif_opener()


def _known_formats() -> frozenset[str]:
    """Return the formats that this Pillow can open: AVIF came late, HEIF comes from another package."""
    Image.init()
    return frozenset(Image.OPEN)


def _check_work(file: IO[bytes], name: str, header_only: bool) -> None:
    if isinstance(file, io.BytesIO):
        check_image(file.getvalue(), name, header_only=header_only)
        return
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        check_image(data, name, header_only=header_only)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn whatever a decoder throws at damaged data into an error that names the file."""
    try:
        yield
    except BadFileError:
        raise
    except UnidentifiedImageError as error:
        known = "JPEG, PNG, WebP, GIF, TIFF, BMP, AVIF or HEIC"
        raise BadFileError(f"{name} is not a {known} image, or its header is damaged") from error
    except Image.DecompressionBombError as error:
        raise BadFileError(f"{name} claims more pixels than can be read: {error}") from error
    except MemoryError as error:
        raise BadFileError(f"{name} does not fit into memory") from error
    except Exception as error:  # Pillow's plugins raise OSError, SyntaxError, ValueError, struct.error, IndexError ...
        raise BadFileError(f"{name} is damaged or cut off: {error}") from error


def _check_size(size: tuple[int, int], max_pixels: int | None, name: str) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise BadFileError(f"{name} has no pixels: its size is {width}x{height}")
    if max_pixels is not None and width * height > max_pixels:
        raise BadFileError(
            f"{name} is {width}x{height}, {width * height:,} pixels; at most {max_pixels:,} are read: make it smaller"
        )


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation, 1 to 8. Damaged EXIF means 1: the pixels are still good, as browsers see it too."""
    try:
        if not exif_is_plain(image.info.get("exif", b"")):
            return 1
        if image.format == "PNG":
            # Image.getexif() would decode a whole PNG in search of an EXIF chunk behind the pixels.
            exif = Image.Exif()
            exif.load(image.info.get("exif", b""))
        else:
            exif = image.getexif()
        value = exif.get(_ORIENTATION, 1)
    except Exception:
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _to_rgb(image: Image.Image) -> Image.Image:
    """Convert any mode to RGB; grey of 16 bits keeps its high byte, transparency shows white."""
    if image.mode.startswith("I"):
        values = np.asarray(image)
        high = values >> 8 if image.mode.startswith("I;16") or values.max(initial=0) > 255 else values
        image = Image.fromarray(high.clip(0, 255).astype(np.uint8))
    elif image.mode == "F":
        raise BadFileError(f"{source_name(image)} holds floating point values; convert it to 8 bits first")
    if image.has_transparency_data:
        return _on_white(image)
    return image.copy() if image.mode == "RGB" else image.convert("RGB")


def _on_white(image: Image.Image) -> Image.Image:
    """Lay an image over white, a band at a time: whole copies with transparency would take five times its memory."""
    width, height = image.size
    rgb = Image.new("RGB", image.size)
    for top in range(0, height, _BAND):
        band = image.crop((0, top, width, min(top + _BAND, height))).convert("RGBA")
        white = Image.new("RGBA", band.size, "white")
        rgb.paste(Image.alpha_composite(white, band).convert("RGB"), (0, top))
    return rgb


def _check_array(array: NDArray[Any]) -> None:
    shape = array.shape
    if not (array.ndim == 2 or (array.ndim == 3 and shape[2] in (1, 3, 4))) or min(shape[:2]) < 1:
        raise BadFileError(f"an image array has shape (H, W), (H, W, 3) or (H, W, 4), not {shape}")
    if array.dtype not in (np.uint8, np.uint16, np.bool_):
        raise BadFileError(f"an image array has 8 or 16 bits without sign (uint8, uint16), not {array.dtype}")


def _from_array(array: NDArray[Any], max_pixels: int) -> Image.Image:
    _check_array(array)
    _check_size((int(array.shape[1]), int(array.shape[0])), max_pixels, "the given array")
    if array.dtype == np.uint16:
        array = (array >> 8).astype(np.uint8)
    elif array.dtype == np.bool_:
        array = array.astype(np.uint8) * 255
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    return _to_rgb(Image.fromarray(np.ascontiguousarray(array)))
