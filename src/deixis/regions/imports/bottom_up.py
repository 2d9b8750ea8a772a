"""Bottom-up attention features (Anderson et al., 2018): the original TSV, its longer form with labels, and npz files.

A TSV row is ``image_id, image_w, image_h, num_boxes, boxes, features`` with the last two as base64 of 32-bit floats.
The longer form, as LXMERT distributes it, is ``img_id, img_h, img_w, objects_id, objects_conf, attrs_id, attrs_conf,
num_boxes, boxes, features`` (ids are 64-bit integers). An npz file of one image holds ``x`` (or ``features``,
``feat``), ``bbox`` (or ``boxes``), ``image_w`` and ``image_h``; ``num_bbox`` tells which axis of ``x`` is the boxes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from deixis.errors import BadFileError
from deixis.reading.arrays import load_npz
from deixis.reading.files import open_file
from deixis.regions.imports.raw import Array, RawRegions, Source, first_key, npz_files

MAX_LINE = 2**28
"""A row of 100 boxes has about 1.1 MB; one that never ends is no such file."""


def open_tsv(paths: list[Path]) -> Source:
    """Open TSV files. An id that comes twice, as some do in the published files, counts the first time only."""
    ids: dict[str, None] = {}
    twice = 0
    for path in paths:
        for line in _lines(path):
            name = line.split(b"\t", 1)[0].decode("utf-8", "replace").strip()
            twice += name in ids
            ids[name] = None
    notes = [f"{twice} images occur more than once: the first was taken"] if twice else []
    return Source(list(ids), lambda: _read_tsv(paths), notes)


def _lines(path: Path) -> Iterator[bytes]:
    with open_file(path) as file:
        while line := file.readline(MAX_LINE):
            columns = line.count(b"\t") + 1
            if columns not in (6, 10):
                raise BadFileError(
                    f"{path} is not a bottom-up TSV: a row has {columns} columns instead of 6 (or 10 with labels)"
                )
            yield line


def _read_tsv(paths: list[Path]) -> Iterator[tuple[str, RawRegions | str]]:
    seen: set[str] = set()
    for path in paths:
        for line in _lines(path):
            columns = [column.strip() for column in line.split(b"\t")]
            name = columns[0].decode("utf-8", "replace")
            if name in seen:
                continue
            seen.add(name)
            try:
                row: RawRegions | str = _row(columns)
            except (ValueError, OverflowError, binascii.Error, BadFileError) as error:
                row = f"its row in {path} is damaged: {error}"
            yield name, row


def _row(columns: list[bytes]) -> RawRegions:
    scores = labels = None
    if len(columns) == 6:
        width, height, count = (int(value) for value in columns[1:4])
    else:
        height, width, count = int(columns[1]), int(columns[2]), int(columns[7])
        labels = _floats(columns[3], "<i8", count)[:, 0]
        scores = _floats(columns[4], "<f4", count)[:, 0]
    boxes, features = _floats(columns[-2], "<f4", count), _floats(columns[-1], "<f4", count)
    return RawRegions(boxes, features, (width, height), scores, labels)


def _floats(column: bytes, dtype: str, count: int) -> Array:
    data = base64.b64decode(column, validate=True)
    if count < 1 or len(data) % (count * np.dtype(dtype).itemsize):
        raise BadFileError(f"{len(data)} bytes do not hold {count} boxes")
    return np.frombuffer(data, dtype).reshape(count, -1)


def open_npz(paths: list[Path]) -> Source:
    """Open npz files of one image each; the file's name is the id."""
    files = {file.stem: file for file in npz_files(paths)}
    notes = ["a pickled member 'info' (labels and scores), where there is one, is not read: unpickling can run code"]
    return Source(list(files), lambda: ((name, _npz(file)) for name, file in files.items()), notes)


def _npz(path: Path) -> RawRegions | str:
    try:
        arrays = load_npz(path)
        boxes = first_key(arrays, ("bbox", "boxes"), path)
        features = first_key(arrays, ("x", "features", "feat"), path)
        count = int(_number(arrays.get("num_bbox", len(boxes))))
        if features.ndim == 2 and len(features) != count and features.shape[1] == count:
            features = features.T
        width = int(_number(first_key(arrays, ("image_w", "image_width", "width"), path)))
        height = int(_number(first_key(arrays, ("image_h", "image_height", "height"), path)))
        probs = arrays.get("cls_prob")
        return RawRegions(
            boxes[:count],
            features[:count],
            (width, height),
            scores=None if probs is None else probs[:count, 1:].max(1),
            class_probs=None if probs is None else probs[:count, 1:],  # column 0 is the background
        )
    except (BadFileError, TypeError, ValueError, IndexError, OverflowError) as error:
        return str(error)


def _number(value: Any) -> float:
    return float(np.asarray(value).reshape(-1)[0])
