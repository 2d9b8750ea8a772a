"""Detectors of torchvision as extractors: ``torchvision:fasterrcnn_resnet50_fpn_v2`` and its relatives.

Written to the public interface of torchvision 0.15 and later. Two-stage detectors (Faster and Mask R-CNN) describe a
region by their box head, as bottom-up attention does; one-stage detectors (RetinaNet, FCOS) by the mean of their finest
feature map inside the box. Images go through one at a time.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deixis.errors import DeixisError, MissingExtraError
from deixis.regions.adapters.common import Detections, choose_regions, fingerprint_of
from deixis.regions.network.roi import roi_align
from deixis.types import Regions

SCORE = 0.01
"""Detections above this score are kept: proposals want recall, the detectors' own 0.05 is for precision."""
CELLS = 4


class TorchvisionExtractor:
    """A torchvision detector. Build one with :meth:`load`, or from a model and the names of its classes.

    Args:
        model: A detector in the sense of ``torchvision.models.detection``: called with a list of (3, H, W) images it
            gives ``boxes``, ``labels`` and ``scores`` for each; it has ``transform`` and ``backbone``, and a two-stage
            one has ``roi_heads``.
        class_names: What the labels mean, label 0 (the background) left out.
        name: Its name, for the fingerprint.
        device: Where it runs.
    """

    def __init__(self, model: nn.Module, class_names: Sequence[str], name: str, *, device: str = "cpu") -> None:
        self.model: Any = model.eval().to(device)
        self.class_names = tuple(class_names)
        self.device = device
        self._set("score_thresh", SCORE)
        self._fingerprint = fingerprint_of(f"torchvision:{name}", model, {"score": SCORE, "cells": CELLS})

    @classmethod
    def load(cls, name: str, *, device: str = "cpu") -> Self:
        """Download a detector with its default weights."""
        try:
            models: Any = importlib.import_module("torchvision.models")
        except ImportError as error:
            raise MissingExtraError("torchvision", "torchvision", f"the extractor torchvision:{name}") from error
        known = models.list_models(module=models.detection)
        if name not in known:
            raise DeixisError(f"torchvision has no detector {name!r}; it has {', '.join(known)}")
        weights = models.get_model_weights(name).DEFAULT
        model = models.get_model(name, weights=weights)
        return cls(model, weights.meta["categories"][1:], name, device=device)

    @property
    def fingerprint(self) -> str:
        """Name, and a hash of weights and settings."""
        return self._fingerprint

    @torch.inference_mode()
    def extract(self, images: Sequence[NDArray[np.uint8]], *, max_regions: int = 100) -> list[Regions]:
        """Return at most ``max_regions`` regions and the whole image for each image."""
        self._set("detections_per_img", 3 * max_regions)  # some repeat a box for several classes
        results = []
        for image in images:
            pixels = torch.from_numpy(image.copy()).permute(2, 0, 1).float().to(self.device) / 255
            found = self._detect(pixels)
            size = image.shape[1], image.shape[0]
            results.append(choose_regions(found, size, max_regions, self.fingerprint, self.class_names))
        return results

    def _set(self, name: str, value: float) -> None:
        """Change a setting where the detector keeps it: in its box heads, or, with one stage, in itself."""
        holder: Any = getattr(self.model, "roi_heads", self.model)
        if hasattr(holder, name):
            setattr(holder, name, value)

    def _detect(self, pixels: Tensor) -> Detections:
        out = self.model([pixels])[0]
        boxes = out["boxes"]  # (Q, 4)
        inputs, _ = self.model.transform([pixels])
        maps = self.model.backbone(inputs.tensors)
        maps = maps if isinstance(maps, dict) else {"0": maps}
        height, width = inputs.image_sizes[0]
        scale = boxes.new_tensor([width / pixels.shape[2], height / pixels.shape[1]] * 2)
        if hasattr(self.model, "roi_heads"):
            heads = self.model.roi_heads
            features = heads.box_head(heads.box_roi_pool(maps, [boxes * scale], inputs.image_sizes))
            scores = heads.box_predictor(features)[0].softmax(-1)[:, 1:]  # without the background
            return Detections(boxes, features, out["scores"], scores[:, : len(self.class_names)])
        finest = next(iter(maps.values()))
        ratio = finest.shape[-1] / inputs.tensors.shape[-1]
        first = torch.zeros(len(boxes), dtype=torch.long, device=boxes.device)
        features = roi_align(finest, boxes * scale, first, ratio, CELLS).mean((2, 3))
        probs = boxes.new_zeros(len(boxes), len(self.class_names))
        labels = (out["labels"] - 1).clamp(0, max(len(self.class_names) - 1, 0))
        probs[torch.arange(len(boxes)), labels] = out["scores"]
        return Detections(boxes, features, out["scores"], probs)
