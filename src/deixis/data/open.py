"""Open a dataset by its path: the format is recognised from what lies there, or given by name."""

from __future__ import annotations

from pathlib import Path

from deixis.data.dataset import Dataset
from deixis.data.photo_folder import photos_below
from deixis.errors import BadFileError, DeixisError
from deixis.registry import REGISTRY, find_class, is_outside


def readers() -> tuple[type[Dataset], ...]:
    """Return all readers with a short name, in the order they are asked whether a folder is theirs."""
    return tuple(find_class("reader", name, "the registry") for name in REGISTRY["reader"])


def open_dataset(path: str | Path, format: str | None = None) -> Dataset:
    """Open the dataset at ``path`` without reading it all; ``format`` names its reader, or ``package.module:Class``.

    >>> dataset = open_dataset("flickr30k-entities")  # doctest: +SKIP
    >>> dataset["1000268201"].captions[0].text  # doctest: +SKIP
    'A child in a pink dress is climbing up a set of stairs in an entry way .'
    """
    path = Path(path)
    if format is not None:
        if format not in REGISTRY["reader"] and not is_outside(format):
            raise DeixisError(f"unknown dataset format {format!r}; there are {_names()}, or package.module:Class")
        chosen: type[Dataset] = find_class("reader", format, "the dataset's format")
        _must_exist(path)
        return chosen(path)
    _must_exist(path)
    for reader in readers():
        if reader.recognises(path):
            return reader(path)
    told = f"{path} looks like none of the dataset formats {_names()}; docs/data.md shows their layouts"
    if path.is_dir() and next(photos_below(path), None) is not None:
        told += ". It holds photos, but no captions.csv (image,caption), no metadata.jsonl and no .txt beside a photo"
    raise BadFileError(told)


def _must_exist(path: Path) -> None:
    try:
        if path.exists():
            return
    except (OSError, ValueError) as error:
        raise BadFileError(f"{path} cannot be read: {error}") from error
    raise BadFileError(f"there is no file or folder {path}")


def _names() -> str:
    return ", ".join(REGISTRY["reader"])
