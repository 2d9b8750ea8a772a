"""No torchvision exists for the torch used here: its interface is met by a small detector written to it.

Where torchvision is installed, the second half runs real detectors with random weights.
"""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from deixis.errors import MissingExtraError
from deixis.regions.adapters.torchvision_detectors import TorchvisionExtractor
from deixis.regions.network.roi import roi_align
from deixis.regions.registry import build_extractor

HAVE = importlib.util.find_spec("torchvision") is not None
NAMES = ("cat", "dog")
BOXES = torch.tensor([[0.0, 0.0, 20.0, 20.0], [10.0, 5.0, 30.0, 25.0], [1.0, 0.0, 20.0, 20.0]])


class HalfSize(nn.Module):
    """A transform in torchvision's manner: resizes, and says how large each image became."""

    def forward(self, images: list[Tensor], targets: None = None) -> tuple[Any, None]:
        small = F.interpolate(images[0][None], scale_factor=0.5, mode="bilinear")
        return SimpleNamespace(tensors=small, image_sizes=[tuple(small.shape[-2:])]), None


class TwoStage(nn.Module):
    """A two-stage detector in torchvision's manner, whose boxes are always the same."""

    def __init__(self, two_stage: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.transform = HalfSize()
        self.backbone = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.score_thresh = 0.05
        self.detections_per_img = 100
        if two_stage:
            self.roi_heads = nn.Module()
            heads: Any = self.roi_heads
            heads.score_thresh, heads.detections_per_img = 0.05, 100
            heads.box_head = nn.Sequential(nn.Flatten(), nn.Linear(6 * 4, 5))
            heads.scores = nn.Linear(5, 3)
            heads.box_predictor = lambda features: (heads.scores(features), None)
            heads.box_roi_pool = self._pool

    def _pool(self, maps: dict[str, Tensor], boxes: list[Tensor], sizes: Any) -> Tensor:
        return roi_align(maps["0"], boxes[0], torch.zeros(len(boxes[0]), dtype=torch.long), 0.5, 2)

    def forward(self, images: list[Tensor]) -> list[dict[str, Tensor]]:
        labels, scores = torch.tensor([1, 2, 1]), torch.tensor([0.5, 0.75, 0.25])
        return [{"boxes": BOXES, "labels": labels, "scores": scores}]


def photo(width: int, height: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8)


def test_a_two_stage_detector_describes_regions_with_its_box_head() -> None:
    model: Any = TwoStage()
    extractor = TorchvisionExtractor(model, NAMES, "made")
    image = photo(40, 30)
    regions = extractor.extract([image], max_regions=5)[0]
    assert regions.boxes.tolist() == [BOXES[1].tolist(), BOXES[0].tolist(), [0, 0, 40, 30]]  # the third repeats
    assert regions.objectness.tolist() == [0.75, 0.5, 0]
    with torch.no_grad():
        small, _ = model.transform([torch.from_numpy(image).permute(2, 0, 1).float() / 255])
        pooled = roi_align(model.backbone(small.tensors), BOXES / 2, torch.zeros(3, dtype=torch.long), 0.5, 2)
        features = model.roi_heads.box_head(pooled)
        probs = model.roi_heads.scores(features).softmax(-1)[:, 1:]
    torch.testing.assert_close(regions.features[0], features[1])
    assert regions.class_probs is not None
    torch.testing.assert_close(regions.class_probs[:2], probs[[1, 0]])
    assert model.roi_heads.score_thresh == 0.01


def test_a_one_stage_detector_describes_regions_with_its_map() -> None:
    model: Any = TwoStage(two_stage=False)
    extractor = TorchvisionExtractor(model, NAMES, "made")
    regions = extractor.extract([photo(40, 30)], max_regions=1)[0]
    assert regions.features.shape == (2, 6)
    assert regions.class_probs is not None
    assert regions.class_probs.tolist() == [[0, 0.75], [0, 0]]


def test_the_fingerprint_follows_the_weights() -> None:
    model = TwoStage()
    first = TorchvisionExtractor(model, NAMES, "made").fingerprint
    assert TorchvisionExtractor(TwoStage(), NAMES, "made").fingerprint == first
    with torch.no_grad():
        model.backbone.weight[0, 0, 0, 0] += 1
    assert TorchvisionExtractor(model, NAMES, "made").fingerprint != first


@pytest.mark.skipif(HAVE, reason="torchvision is installed")
def test_without_torchvision_the_way_out_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"deixis\[torchvision\]"):
        build_extractor("torchvision:fasterrcnn_resnet50_fpn")


@pytest.mark.skipif(not HAVE, reason="needs torchvision, which has no build for the torch used here")
@pytest.mark.parametrize("name", ["fasterrcnn_mobilenet_v3_large_320_fpn", "fcos_resnet50_fpn"])
def test_real_detectors_with_random_weights(name: str) -> None:
    models: Any = importlib.import_module("torchvision.models")
    model = models.get_model(name, weights=None, weights_backbone=None, num_classes=3)
    regions = TorchvisionExtractor(model, NAMES, name).extract([photo(120, 90)], max_regions=5)[0]
    assert regions.boxes[-1].tolist() == [0, 0, 120, 90]
    assert len(regions) <= 6
