"""Describing given boxes: those the extractor found itself must look as they did when it found them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from deixis.images import load_image
from deixis.regions.lite import load_lite

PHOTO = Path(__file__).parents[2] / "examples" / "photos" / "astronaut.jpg"


def test_its_own_boxes_look_the_same() -> None:
    extractor = load_lite()
    pixels = np.asarray(load_image(PHOTO))
    found = extractor.extract([pixels], max_regions=12)[0]
    again = extractor.describe(pixels, found.boxes[:-1])
    assert torch.allclose(again.boxes, found.boxes, atol=1e-3)
    assert torch.allclose(again.features, found.features, atol=1e-3)
    assert again.size == found.size
    assert again.objectness.tolist() == [1.0] * len(found)


def test_no_boxes_leave_the_whole_photo_and_boxes_outside_are_cut() -> None:
    extractor = load_lite()
    pixels = np.asarray(load_image(PHOTO))
    height, width = pixels.shape[:2]
    assert extractor.describe(pixels, torch.zeros(0, 4)).boxes.tolist() == [[0, 0, width, height]]
    cut = extractor.describe(pixels, torch.tensor([[-20.0, 5.0, width + 9.0, 30.0]])).boxes[0]
    assert torch.allclose(cut, torch.tensor([0.0, 5.0, width, 30.0]), atol=1e-3)
