"""Regions made elsewhere, taken over into a store: bottom-up attention, GVD, plain npz. Nothing is ever unpickled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from deixis.errors import BadFileError, DeixisError
from deixis.reading.files import read_lines
from deixis.regions.imports.beside import Beside
from deixis.regions.imports.bottom_up import open_npz, open_tsv
from deixis.regions.imports.gvd import open_gvd
from deixis.regions.imports.plain_npz import open_plain
from deixis.regions.imports.raw import RawRegions, Source, to_regions
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import write_store
from deixis.types import Regions

NO_NAMES = "these files hold detector classes, which are left out: name them with --class-names, one a line"
FORMATS = ("bottom-up-tsv", "bottom-up-npz", "gvd", "npz")

__all__ = ["FORMATS", "Beside", "RawRegions", "import_regions"]


def import_regions(
    paths: list[Path],
    output: str | Path,
    *,
    format: str,
    class_names: Path | None = None,
    sizes: Path | None = None,
    name: str = "",
    beside: Beside | None = None,
) -> tuple[RegionStore, list[str]]:
    """Take over regions into a new store; return it, and notes for the user.

    Args:
        paths: Files or folders, as the module of each format describes.
        output: Folder of the store.
        format: One of :data:`FORMATS`.
        class_names: Text file with one class name per line, without the background.
        sizes: For GVD: a folder with the photos, or a JSON of ``{id: [width, height]}``.
        beside: Conv maps, global vectors and frame features to keep with the regions.
        name: Names the detector in the fingerprint, so that features of two detectors never mix.
    """
    for path in paths:
        if not path.exists():
            raise BadFileError(f"there is no file or folder {path}")
    source = _open(paths, format, sizes)
    names = _read_names(class_names)
    fingerprint = f"import:{format}:{name or 'unnamed'}"

    settings = {"format": format, "name": name, "classes": len(names)}
    ids = [_writable(image) for image in source.ids]
    rows = _usable(source, fingerprint, names, beside or Beside())
    return write_store(output, rows, ids, fingerprint, settings), source.notes


def _usable(
    source: Source, fingerprint: str, names: tuple[str, ...], beside: Beside
) -> Iterator[tuple[str, Regions | str]]:
    """Yield the regions of each image, or the reason why there are none: one bad file does not end an import."""
    first: tuple[str, int] | None = None
    for image, raw in source.read():
        if not names and not isinstance(raw, str) and raw.labels is not None and NO_NAMES not in source.notes:
            source.notes.append(NO_NAMES)
        try:
            regions: Regions | str = (
                raw if isinstance(raw, str) else to_regions(beside.add(image, raw), fingerprint, names)
            )
        except BadFileError as error:
            regions = str(error)
        if not isinstance(regions, str):
            width = regions.features.shape[1]
            first = first or (image, width)
            if width != first[1]:
                regions = f"its features have {width} numbers, those of {first[0]} have {first[1]}"
        yield _writable(image), regions


def _writable(image: str) -> str:
    """Return an id with question marks for what is no text: half a character, a file's name in no known encoding."""
    return image.encode("utf-8", "replace").decode()


def _open(paths: list[Path], format: str, sizes: Path | None) -> Source:
    if format == "bottom-up-tsv":
        return open_tsv(paths)
    if format == "bottom-up-npz":
        return open_npz(paths)
    if format == "gvd":
        return open_gvd(paths, sizes)
    if format == "npz":
        return open_plain(paths)
    raise DeixisError(f"unknown format {format!r}; there are {', '.join(FORMATS)}")


def _read_names(path: Path | None) -> tuple[str, ...]:
    return () if path is None else tuple(read_lines(path))
