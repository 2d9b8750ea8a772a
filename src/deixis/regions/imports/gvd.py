"""Features of Grounded Video Description (Zhou et al., 2019): proposals in HDF5, features in one npy file per image.

``dets_labels`` is (images, P, 6) for photos, columns x1 y1 x2 y2 class score, or (segments, P, 7) for clips, columns
x1 y1 x2 y2 frame class score; ``nms_num`` (or ``dets_num``) says how many rows count. Class 0 is the background. Row
i belongs to ``images[i]`` (photos) or ``videos[i]`` (segments of clips) of the dictionary JSON, and its features are
``ID.npy``, (N, D) or (frames, N / frames, D).
The files do not say how large the images are: give the photos, or a JSON of ``{id: [width, height]}``, where clips may
be named by their video; ``anet_entities_trainval.json`` is such a file (``rwidth``, ``rheight``).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from deixis.errors import BadFileError, DeixisError, MissingExtraError
from deixis.images import IMAGE_SUFFIXES, image_size
from deixis.reading.arrays import MAX_ARRAY_BYTES, load_npy
from deixis.reading.files import open_file
from deixis.reading.plain import read_json_object
from deixis.regions.imports.raw import Array, RawRegions, Source


def open_gvd(paths: list[Path], sizes: Path | None) -> Source:
    """Open a proposal file (.h5 or .hdf5), a dictionary (.json) and a folder of features, given in any order."""
    proposals = _only(paths, lambda path: path.suffix in (".h5", ".hdf5"), "a proposal file (.h5)")
    dictionary = _only(paths, lambda path: path.suffix == ".json", "a dictionary of images (.json)")
    folder = _only(paths, Path.is_dir, "a folder of features (.npy)")
    if sizes is None:
        raise DeixisError("these files do not hold image sizes: give --sizes, a folder of the photos or a JSON file")
    size_of = _sizes(sizes)
    listed = read_json_object(dictionary)
    images = listed.get("images", listed.get("videos"))  # dic_flickr30k.json and dic_anet.json
    if not isinstance(images, list) or not all(isinstance(image, dict) and "id" in image for image in images):
        raise BadFileError(f"{dictionary} has no list 'images' or 'videos' with an 'id' each")
    ids = [str(image["id"]) for image in images]
    with _hdf5(proposals) as (table, counts):
        rows, depth, counted = table.shape[0], table.shape[-1], counts.size
    if counted != rows:
        raise BadFileError(f"{proposals} counts the proposals of {counted} images and holds those of {rows}")
    if rows != len(ids) or depth not in (6, 7):
        raise BadFileError(
            f"{proposals} holds proposals of {rows} images with {depth} columns (6 or 7 expected), {dictionary} names "
            f"{len(ids)} images"
        )

    def read() -> Iterator[tuple[str, RawRegions | str]]:
        with _hdf5(proposals) as (table, counts):
            kept = counts[:].reshape(-1)
            for at, name in enumerate(ids):
                try:
                    with _explained(proposals):
                        proposed = np.asarray(table[at]).reshape(-1, depth)[: int(kept[at])]
                    features = load_npy(folder / Path(f"{name}.npy").name)
                    found: RawRegions | str = _image(proposed, features, size_of(name))
                except BadFileError as error:
                    found = str(error)
                yield name, found

    return Source(ids, read, [])


def _image(table: Array, features: Array, size: tuple[int, int]) -> RawRegions:
    if features.ndim not in (2, 3) or not features.size or table.dtype.kind not in "fiu":
        raise BadFileError(f"features of shape {features.shape} and proposals of {table.dtype}")
    if not np.isfinite(table).all() or np.abs(table).max(initial=0) > 2**31:
        raise BadFileError("proposals that are not finite")
    frames = features.shape[0] if features.ndim == 3 else 1
    features = features.reshape(-1, features.shape[-1])
    if len(features) < len(table):
        raise BadFileError(f"{len(features)} features for {len(table)} proposals")
    frame = table[:, 4].astype(np.int64) if table.shape[1] == 7 else None
    if frame is not None and len(frame):
        frames = max(frames, int(frame.max()) + 1)
    return RawRegions(
        boxes=table[:, :4],
        features=features[: len(table)],
        size=size,
        scores=table[:, -1],
        labels=table[:, -2].astype(np.int64) - 1,
        frame=frame,
        frames=frames,
    )


def _sizes(path: Path) -> Callable[[str], tuple[int, int]]:
    if path.is_dir():
        files = {file.stem: file for file in sorted(path.rglob("*")) if file.suffix.lower() in IMAGE_SUFFIXES}

        def from_photo(name: str) -> tuple[int, int]:
            if name not in files:
                raise BadFileError(f"there is no photo {name} in {path}")
            return image_size(files[name])

        return from_photo
    table = read_json_object(path)
    if isinstance(table.get("database"), dict):  # ActivityNet-Entities before cleaning
        table = {
            video: (entry.get("rwidth"), entry.get("rheight"))
            for video, entry in table["database"].items()
            if isinstance(entry, dict)
        }

    def from_table(name: str) -> tuple[int, int]:
        try:
            width, height = table[name if name in table else name.rpartition("_segment_")[0]]
            return int(width), int(height)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise BadFileError(f"{path} has no [width, height] of {name}") from error

    return from_table


def _only(paths: list[Path], test: Callable[[Path], bool], what: str) -> Path:
    found = [path for path in paths if test(path)]
    if len(found) != 1:
        raise DeixisError(f"GVD features are three things, and {what} is one of them; {len(found)} were given")
    return found[0]


@contextmanager
def _hdf5(path: Path) -> Iterator[tuple[Any, Any]]:
    """Open a proposal file and give its table and its counts, after a look at what they claim to be."""
    try:
        h5py = importlib.import_module("h5py")
    except ImportError as error:
        raise MissingExtraError("h5py", "imports", "reading HDF5") from error
    with _explained(path), h5py.File(open_file(path), "r") as file:
        names = {"dets_labels", "nms_num", "dets_num"} & set(file)
        if "dets_labels" not in names or len(names) == 1:
            raise BadFileError(f"{path} has no dets_labels and nms_num; it holds {', '.join(file) or 'nothing'}")
        if not all(isinstance(file.get(name, getlink=True), h5py.HardLink) for name in names):  # asked, not followed
            raise BadFileError(f"{path}: its arrays lie in other files, which are not read")
        table = file["dets_labels"]
        clips = getattr(table, "ndim", 0) == 3 and table.shape[-1] == 7
        # GVD counts the proposals of photos by nms_num and those of clips by dets_num
        order = ("dets_num", "nms_num") if clips else ("nms_num", "dets_num")
        counts = file[next(name for name in order if name in names)]
        for data in (table, counts):
            if not isinstance(data, h5py.Dataset) or data.is_virtual or data.external:
                raise BadFileError(f"{path}: its arrays lie in other files, which are not read")
        if len(table.shape) != 3 or counts.dtype.kind not in "iuf":
            raise BadFileError(f"{path}: dets_labels of shape {table.shape}, counts of {counts.dtype}")
        if max(math.prod(table.shape[1:]) * table.dtype.itemsize, counts.nbytes) > MAX_ARRAY_BYTES:
            raise BadFileError(f"{path}: proposals of one image take more than {MAX_ARRAY_BYTES:,} bytes")
        yield table, counts


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn whatever HDF5 throws at damaged data into an error that names the file."""
    try:
        yield
    except DeixisError:
        raise
    except Exception as error:  # h5py raises OSError, RuntimeError, KeyError, ValueError, TypeError, by what is damaged
        raise BadFileError(f"{path} is not a readable HDF5 file: {error}") from error
