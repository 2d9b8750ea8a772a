"""Off-the-shelf networks that put pseudo-boxes on unlabelled photos, run through onnxruntime.

They teach the `lite` extractor and are used at training time only: YOLOX-nano knows COCO's 80 things, MobileSAM
knows parts and stuff (shirts, faces, sky, road) that captions name and COCO does not. No person drew a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from deixis.errors import DeixisError

Array = npt.NDArray[np.float32]

YOLOX_SIDE = 416
YOLOX_STRIDES = (8, 16, 32)
YOLOX_GRIDS = tuple(YOLOX_SIDE // stride for stride in YOLOX_STRIDES)  # 52, 26, 13 cells a side
SAM_SIDE = 512


def _floats(values: Sequence[float]) -> Array:
    return np.asarray(values, dtype=np.float32)


def _session(path: Path, threads: int) -> Any:
    """Open an ONNX file with a fixed number of threads, or say which file is missing."""
    try:
        import onnxruntime
    except ImportError as error:
        raise DeixisError("running the teachers needs onnxruntime: pip install 'deixis[train]'") from error
    if not path.is_file():
        raise DeixisError(f"teacher network {path} is missing; point `teachers` of the recipe at its folder")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def suppress(boxes: Array, scores: Array, threshold: float, limit: int) -> npt.NDArray[np.int64]:
    """Greedy non-maximum suppression in numpy; indices of the kept boxes, best first."""
    order = np.argsort(-scores, kind="stable")
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept: list[int] = []
    while len(order) and len(kept) < limit:
        best, order = order[0], order[1:]
        kept.append(int(best))
        low = np.maximum(boxes[best, :2], boxes[order, :2])
        high = np.minimum(boxes[best, 2:], boxes[order, 2:])
        overlap = np.clip(high - low, 0, None).prod(axis=1)
        order = order[overlap <= threshold * np.maximum(area[best] + area[order] - overlap, 1e-9)]
    return np.asarray(kept, dtype=np.int64)


class YoloxTeacher:
    """YOLOX-nano: for every cell of its three grids a box, an objectness and 80 class scores."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self._session = _session(folder / "yolox_nano.onnx", threads)
        self._input = self._session.get_inputs()[0].name
        axes = [np.stack(np.meshgrid(np.arange(g), np.arange(g)), -1).reshape(-1, 2) for g in YOLOX_GRIDS]
        self._cells = np.concatenate(axes).astype(np.float32)  # (3549, 2) column, row
        self._strides = np.repeat(_floats(YOLOX_STRIDES), [g * g for g in YOLOX_GRIDS])[:, None]

    def cells(self, image: Image.Image) -> tuple[Array, Array, Array]:
        """Boxes in pixels of `image` (3549, 4), objectness (3549,) and class scores (3549, 80) of every cell."""
        scale = YOLOX_SIDE / max(image.size)
        width, height = (max(1, round(side * scale)) for side in image.size)
        canvas = np.full((YOLOX_SIDE, YOLOX_SIDE, 3), 114, dtype=np.float32)
        canvas[:height, :width] = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))[:, :, ::-1]
        raw = self._session.run(None, {self._input: canvas.transpose(2, 0, 1)[None]})[0][0]  # (3549, 85)
        centre = (raw[:, :2] + self._cells) * self._strides
        half = np.exp(raw[:, 2:4]) * self._strides / 2
        boxes = np.concatenate([centre - half, centre + half], axis=1)
        boxes *= _floats([image.width / width, image.height / height] * 2)
        boxes = np.clip(boxes, 0, _floats([image.width, image.height] * 2))
        return boxes, raw[:, 4], raw[:, 5:]


class MobileSamTeacher:
    """MobileSAM prompted with a grid of points: boxes of class-agnostic wholes, parts and stuff."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self._encoder = _session(folder / "mobilesam_encoder_512.onnx", threads)
        self._decoder = _session(folder / "mobilesam_decoder_512.onnx", threads)

    def boxes(self, image: Image.Image, points: int = 10, limit: int = 80, lowest: float = 0.5) -> Array:
        """Boxes with scores (N, 5) in pixels of `image`; score = predicted quality x stability of the mask."""
        scale = SAM_SIDE / max(image.size)
        width, height = (max(1, round(side * scale)) for side in image.size)
        pixels = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR), dtype=np.float32)
        canvas = np.zeros((SAM_SIDE, SAM_SIDE, 3), dtype=np.float32)
        canvas[:height, :width] = (pixels - [123.675, 116.28, 103.53]) / [58.395, 57.12, 57.375]
        name = self._encoder.get_inputs()[0].name
        embedding = self._encoder.run(None, {name: canvas.transpose(2, 0, 1)[None]})[0]
        at = (np.arange(points, dtype=np.float32) + 0.5) / points
        grid = np.stack(np.meshgrid(at * width, at * height), -1).reshape(-1, 2)
        masks, quality = self._decoder.run(["masks", "quality"], {"embedding": embedding, "points": grid})
        high, wide = -(-height // 4), -(-width // 4)
        masks = masks.reshape(-1, *masks.shape[-2:])[:, :high, :wide]
        sure, perhaps = (masks > 1).sum((1, 2)), (masks > -1).sum((1, 2))
        scores = quality.reshape(-1) * sure / np.maximum(perhaps, 1)
        keep = (scores >= lowest) & (sure > 0)
        boxes = _boxes_of(masks[keep] > 0) * 4
        boxes *= _floats([image.width / width, image.height / height] * 2)
        boxes = np.clip(boxes, 0, _floats([image.width, image.height] * 2))
        kept = suppress(boxes, scores[keep], 0.7, limit)
        return np.concatenate([boxes[kept], scores[keep][kept, None]], axis=1).astype(np.float32)


def _boxes_of(masks: npt.NDArray[np.bool_]) -> Array:
    """Tight boxes (N, 4) of non-empty masks (N, H, W), in mask pixels."""
    columns: npt.NDArray[np.bool_] = np.logical_or.reduce(masks, axis=1)
    rows: npt.NDArray[np.bool_] = np.logical_or.reduce(masks, axis=2)
    left, top = columns.argmax(1), rows.argmax(1)
    right = masks.shape[2] - columns[:, ::-1].argmax(1)
    bottom = masks.shape[1] - rows[:, ::-1].argmax(1)
    return np.stack([left, top, right, bottom], axis=1).astype(np.float32)
