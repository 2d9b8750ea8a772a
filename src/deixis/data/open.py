"""Open a dataset by its path: the format is recognised from what lies there, or given by name."""

from __future__ import annotations

from pathlib import Path

from deixis.data.activitynet_entities import ActivityNetEntities
from deixis.data.captions_tsv import CaptionsTsv
from deixis.data.coco import Coco
from deixis.data.dataset import Dataset
from deixis.data.flickr30k_entities import Flickr30kEntities
from deixis.data.folder import Folder
from deixis.data.photo_folder import PhotoFolder, photos_below
from deixis.data.referit import ReferIt
from deixis.data.webdataset import WebDataset
from deixis.errors import BadFileError, DeixisError

READERS: tuple[type[Dataset], ...] = (
    Flickr30kEntities,
    ActivityNetEntities,
    ReferIt,
    Coco,
    Folder,
    PhotoFolder,
    WebDataset,
    CaptionsTsv,
)
"""In the order they are asked: the more particular layouts first."""


def open_dataset(path: str | Path, format: str | None = None) -> Dataset:
    """Open the dataset at ``path`` without reading it all.

    >>> dataset = open_dataset("flickr30k-entities")  # doctest: +SKIP
    >>> dataset["1000268201"].captions[0].text  # doctest: +SKIP
    'A child in a pink dress is climbing up a set of stairs in an entry way .'
    """
    path = Path(path)
    if format is not None:
        for reader in READERS:
            if reader.format == format:
                _must_exist(path)
                return reader(path)
        raise DeixisError(f"unknown dataset format {format!r}; there are {_names()}")
    _must_exist(path)
    for reader in READERS:
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
    return ", ".join(reader.format for reader in READERS)
