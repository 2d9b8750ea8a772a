"""Plain npz files, one per image: the simplest way to bring regions along.

``boxes`` (N, 4) in pixels, ``features`` (N, D) and ``size`` (width, height) are needed; ``objectness`` (N,),
``class_probs`` (N, C) and, for clips, ``frame`` (N,) and ``frames`` (a number) are welcome. The file's name is the id.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from deixis.errors import BadFileError
from deixis.reading.arrays import load_npz
from deixis.regions.imports.raw import RawRegions, Source, first_key, npz_files


def open_plain(paths: list[Path]) -> Source:
    """Open files and folders of npz files."""
    files = {file.stem: file for file in npz_files(paths)}
    return Source(list(files), lambda: ((name, _read(file)) for name, file in files.items()), [])


def _read(path: Path) -> RawRegions | str:
    try:
        arrays = load_npz(path)
        size = np.asarray(first_key(arrays, ("size",), path)).reshape(-1)
        if len(size) != 2:
            raise BadFileError(f"size should be width and height, got {size.tolist()}")
        frame = arrays.get("frame")
        frames = int(np.asarray(arrays.get("frames", 1 if frame is None or not frame.size else frame.max() + 1)))
        return RawRegions(
            boxes=first_key(arrays, ("boxes",), path),
            features=first_key(arrays, ("features",), path),
            size=(int(size[0]), int(size[1])),
            scores=arrays.get("objectness"),
            class_probs=arrays.get("class_probs"),
            frame=frame,
            frames=frames,
        )
    except (BadFileError, TypeError, ValueError, OverflowError) as error:
        return str(error)
