"""Regions made elsewhere, taken over into a store: bottom-up attention, GVD, plain npz. Nothing is ever unpickled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from deixis.errors import BadFileError, DeixisError
from deixis.regions.imports.bottom_up import open_npz, open_tsv
from deixis.regions.imports.gvd import open_gvd
from deixis.regions.imports.plain_npz import open_plain
from deixis.regions.imports.raw import RawRegions, Source, to_regions
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import write_store
from deixis.types import Regions

FORMATS = ("bottom-up-tsv", "bottom-up-npz", "gvd", "npz")

__all__ = ["FORMATS", "RawRegions", "import_regions"]


def import_regions(
    paths: list[Path],
    output: str | Path,
    *,
    format: str,
    class_names: Path | None = None,
    sizes: Path | None = None,
    name: str = "",
) -> tuple[RegionStore, list[str]]:
    """Take over regions into a new store; return it, and notes for the user.

    Args:
        paths: Files or folders, as the module of each format describes.
        output: Folder of the store.
        format: One of :data:`FORMATS`.
        class_names: Text file with one class name per line, without the background.
        sizes: For GVD: a folder with the photos, or a JSON of ``{id: [width, height]}``.
        name: Names the detector in the fingerprint, so that features of two detectors never mix.
    """
    for path in paths:
        if not path.exists():
            raise BadFileError(f"there is no file or folder {path}")
    source = _open(paths, format, sizes)
    names = _read_names(class_names)
    fingerprint = f"import:{format}:{name or 'unnamed'}"

    def images() -> Iterator[tuple[str, Regions | str]]:
        for image, raw in source.read():
            if isinstance(raw, str):
                yield image, raw
                continue
            try:
                yield image, to_regions(raw, fingerprint, names)
            except BadFileError as error:
                yield image, str(error)

    settings = {"format": format, "name": name, "classes": len(names)}
    return write_store(output, images(), source.ids, fingerprint, settings), source.notes


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
    if path is None:
        return ()
    try:
        return tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise BadFileError(f"class names cannot be read from {path}: {error}") from error
