"""Features of Grounded Video Description (Zhou et al., 2019): proposals in HDF5, features in one npy file per image.

``dets_labels`` is (images, P, 6) for photos, columns x1 y1 x2 y2 class score, or (segments, P, 7) for clips, columns
x1 y1 x2 y2 frame class score; ``nms_num`` (or ``dets_num``) says how many rows count. Class 0 is the background. Row
i belongs to ``images[i]`` of the dictionary JSON, and its features are ``ID.npy``, (N, D) or (frames, N / frames, D).
The files do not say how large the images are: give the photos, or a JSON of ``{id: [width, height]}``.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from deixis.errors import BadFileError, DeixisError, MissingExtraError
from deixis.images import IMAGE_SUFFIXES, image_size
from deixis.regions.imports.raw import Array, RawRegions, Source, load_npy


def open_gvd(paths: list[Path], sizes: Path | None) -> Source:
    """Open a proposal file (.h5 or .hdf5), a dictionary (.json) and a folder of features, given in any order."""
    proposals = _only(paths, lambda path: path.suffix in (".h5", ".hdf5"), "a proposal file (.h5)")
    dictionary = _only(paths, lambda path: path.suffix == ".json", "a dictionary of images (.json)")
    folder = _only(paths, Path.is_dir, "a folder of features (.npy)")
    if sizes is None:
        raise DeixisError("these files do not hold image sizes: give --sizes, a folder of the photos or a JSON file")
    size_of = _sizes(sizes)
    try:
        images = json.loads(dictionary.read_text(encoding="utf-8"))["images"]
        ids = [str(image["id"]) for image in images]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadFileError(f"{dictionary} has no list 'images' with an 'id' each") from error
    with _hdf5(proposals) as file:
        rows, depth = file["dets_labels"].shape[0], file["dets_labels"].shape[-1]
    if rows != len(ids) or depth not in (6, 7):
        raise BadFileError(
            f"{proposals} holds proposals of {rows} images with {depth} columns (6 or 7 expected), {dictionary} names "
            f"{len(ids)} images"
        )

    def read() -> Iterator[tuple[str, RawRegions | str]]:
        with _hdf5(proposals) as file:
            counts = file["nms_num" if "nms_num" in file else "dets_num"][:].reshape(-1)
            for at, name in enumerate(ids):
                try:
                    table = np.asarray(file["dets_labels"][at]).reshape(-1, depth)[: int(counts[at])]
                    yield name, _image(table, load_npy(folder / f"{name}.npy"), size_of(name))
                except (BadFileError, OSError) as error:
                    yield name, str(error)

    return Source(ids, read, [])


def _image(table: Array, features: Array, size: tuple[int, int]) -> RawRegions:
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
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadFileError(f"{path} is neither a folder of photos nor a JSON file: {error}") from error

    def from_table(name: str) -> tuple[int, int]:
        try:
            width, height = table[name]
            return int(width), int(height)
        except (KeyError, TypeError, ValueError) as error:
            raise BadFileError(f"{path} has no [width, height] of {name}") from error

    return from_table


def _only(paths: list[Path], test: Callable[[Path], bool], what: str) -> Path:
    found = [path for path in paths if test(path)]
    if len(found) != 1:
        raise DeixisError(f"GVD features are three things, and {what} is one of them; {len(found)} were given")
    return found[0]


def _hdf5(path: Path) -> Any:
    try:
        h5py = importlib.import_module("h5py")
    except ImportError as error:
        raise MissingExtraError("h5py", "imports", "reading HDF5") from error
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise BadFileError(f"{path} is not a readable HDF5 file: {error}") from error
    if "dets_labels" not in file or not {"nms_num", "dets_num"} & set(file):
        held = ", ".join(file) or "nothing"
        file.close()
        raise BadFileError(f"{path} has no dets_labels and nms_num; it holds {held}")
    return file
