from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from deixis import geometry
from deixis.images import load_image
from deixis.interfaces import Extractor
from deixis.regions.appearance import appearance, appearance_planes
from deixis.regions.selective_search import SelectiveSearch, _overlaps

RECTANGLES = [(20, 10, 70, 60), (100, 30, 140, 110), (30, 80, 80, 115)]


def scene() -> NDArray[np.uint8]:
    """Return three flat rectangles on grey."""
    image = np.full((128, 160, 3), 128, dtype=np.uint8)
    for (x1, y1, x2, y2), colour in zip(RECTANGLES, [(220, 30, 30), (30, 200, 60), (40, 60, 230)], strict=True):
        image[y1:y2, x1:x2] = colour
    return image


def test_flat_rectangles_are_found() -> None:
    extractor = SelectiveSearch()
    assert isinstance(extractor, Extractor)
    regions = extractor.extract([scene()], max_regions=20)[0]
    overlap = geometry.iou(torch.tensor(RECTANGLES).float(), regions.boxes).amax(1)
    assert (overlap > 0.8).all()  # the segmentation smooths, which makes the borders segments of their own
    assert regions.boxes[-1].tolist() == [0, 0, 160, 128]
    assert (regions.objectness[:-1].diff() <= 0).all()


def test_boxes_are_in_pixels_of_the_original_whatever_the_size() -> None:
    large = np.kron(scene(), np.ones((4, 4, 1), dtype=np.uint8))
    regions = SelectiveSearch().extract([large], max_regions=20)[0]
    assert regions.size == (640, 512)
    overlap = geometry.iou(torch.tensor(RECTANGLES).float() * 4, regions.boxes).amax(1)
    assert (overlap > 0.8).all()


def test_the_same_pixels_give_the_same_regions() -> None:
    one = SelectiveSearch().extract([scene()])[0]
    two = SelectiveSearch().extract([np.zeros((40, 50, 3), dtype=np.uint8), scene()])[1]
    assert torch.equal(one.boxes, two.boxes)
    assert torch.equal(one.features, two.features)
    assert one.fingerprint == two.fingerprint
    assert SelectiveSearch(alike=0.6).fingerprint != one.fingerprint


@pytest.mark.parametrize("shape", [(1, 1), (1, 200), (3, 4), (8, 8)])
def test_tiny_pictures_have_at_least_the_whole(shape: tuple[int, int]) -> None:
    regions = SelectiveSearch().extract([np.zeros((*shape, 3), dtype=np.uint8)])[0]
    assert regions.boxes[-1].tolist() == [0, 0, shape[1], shape[0]]
    assert torch.isfinite(regions.features).all()


def test_overlaps_are_those_of_the_geometry() -> None:
    corner = np.random.default_rng(0).uniform(0, 50, (30, 2))
    boxes = np.concatenate([corner, corner + np.random.default_rng(1).uniform(1, 40, (30, 2))], 1)
    np.testing.assert_allclose(_overlaps(boxes), geometry.iou(boxes, boxes), atol=1e-5)


def test_appearance_tells_colours_apart_wherever_they_are() -> None:
    image = scene()
    boxes = np.array([RECTANGLES[0], (25, 15, 60, 50), RECTANGLES[1]], dtype=np.float64)
    red, part_of_red, green = appearance(appearance_planes(image), boxes)[:, :48]
    assert red.sum() == pytest.approx(1)
    np.testing.assert_allclose(red, part_of_red, atol=1e-6)
    assert np.minimum(red, green).sum() < 0.5


def test_appearance_is_the_mean_over_the_box() -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 255, (20, 30, 3), dtype=np.uint8)
    planes = appearance_planes(image)
    box = np.array([[8.0, 4.0, 24.0, 16.0]])
    grid = appearance(planes, box)[0, 48:].reshape(4, 4, 11)
    light = np.asarray(Image.fromarray(image).convert("LAB"))[..., 0] / 255
    assert grid[1, 2, 8] == pytest.approx(light[7:10, 16:20].mean(), abs=1e-5)


@pytest.mark.recipe
def test_real_phrases_are_reached(shared: Path) -> None:
    from deixis.data import open_dataset

    dataset = open_dataset(shared / "data" / "flickr8k-entities")
    reached = []
    for name in dataset.ids("val")[:12]:
        example = dataset[name]
        assert not hasattr(example.source, "start")
        regions = SelectiveSearch().extract([np.asarray(load_image(example.source))], max_regions=100)[0]
        for phrase in (phrase for caption in example.captions for phrase in caption.phrases if phrase.boxes):
            overlap = geometry.iou(regions.boxes, torch.tensor(phrase.boxes), plus_one=True)
            reached.append(float(overlap.max() >= 0.5))
    assert np.mean(reached) > 0.75  # .86 on 40 photos of val
