"""The extractor as users call it: batches, odd images, damaged weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import deixis.regions
from deixis.errors import BadFileError
from deixis.interfaces import Extractor
from deixis.regions.lite import CARD, WEIGHTS, LiteExtractor, load_lite, save_lite
from deixis.regions.network.detector import LiteNetwork, LiteShape, geometry
from deixis.regions.network.resize import LARGEST_SIDE, PIXEL_BUDGET, SMALLEST_SIDE, STEP, input_size
from deixis.regions.network.select import Ranking

SMALL = LiteShape(pyramid=16, depth=1, describe=16, hidden=32, feature=24, words=5)
WORDS = ["dog", "grass", "man", "red", "shirt"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("lite")
    save_lite(path, LiteNetwork(SMALL), WORDS, Ranking(), {"note": "random weights"})
    return path


@pytest.fixture(scope="module")
def extractor(folder: Path) -> LiteExtractor:
    return LiteExtractor.load(folder)


def photo(height: int, width: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@given(width=st.integers(1, 30_000), height=st.integers(1, 30_000))
def test_input_size_is_a_multiple_of_32_within_bounds(width: int, height: int) -> None:
    wide, high = input_size(width, height)
    assert wide % STEP == 0
    assert high % STEP == 0
    assert SMALLEST_SIDE <= wide <= LARGEST_SIDE
    assert SMALLEST_SIDE <= high <= LARGEST_SIDE
    assert wide * high <= 1.4 * PIXEL_BUDGET


def test_input_size_by_hand() -> None:
    assert input_size(640, 480) == (416, 320)
    assert input_size(480, 640) == (320, 416)
    assert input_size(1000, 1000) == (352, 352)
    assert input_size(256, 256) == (288, 288)  # 1.3 times the area, no more
    assert input_size(1, 1) == (96, 96)


def test_is_an_extractor(extractor: LiteExtractor) -> None:
    assert isinstance(extractor, Extractor)


def test_batch_equals_single_whatever_is_beside(extractor: LiteExtractor) -> None:
    images = [photo(120, 160, 1), photo(90, 90, 2), photo(160, 120, 3), photo(120, 160, 4)]
    together = extractor.extract(images, max_regions=12)
    for image, batched in zip(images, together, strict=True):
        alone = extractor.extract([image], max_regions=12)[0]
        torch.testing.assert_close(batched.boxes, alone.boxes, atol=1e-2, rtol=1e-4)
        torch.testing.assert_close(batched.features, alone.features, atol=1e-4, rtol=1e-3)
        torch.testing.assert_close(batched.objectness, alone.objectness, atol=1e-5, rtol=1e-3)


def test_same_pixels_same_bytes(extractor: LiteExtractor) -> None:
    first, second = (extractor.extract([photo(100, 140)])[0] for _ in range(2))
    assert torch.equal(first.boxes, second.boxes)
    assert torch.equal(first.features, second.features)
    assert first.fingerprint == second.fingerprint


def test_everything_is_there(extractor: LiteExtractor) -> None:
    regions = extractor.extract([photo(200, 300)], max_regions=7)[0]
    assert len(regions) == 8
    assert regions.boxes[-1].tolist() == [0, 0, 300, 200]
    assert regions.features.shape == (8, 24)
    assert regions.class_probs is not None
    assert regions.class_probs.shape == (8, 80)
    assert regions.class_names[0] == "person"
    assert len(regions.class_names) == 80
    assert regions.word_probs is not None
    assert regions.word_probs.shape == (8, 5)
    assert regions.word_names == tuple(WORDS)
    assert regions.feature_map is not None
    assert regions.feature_map.shape == (1, 7, 7, 16)
    assert regions.global_features is not None
    assert regions.global_features.shape == (1, 24)
    assert regions.regionness is not None
    for scores in (regions.objectness, regions.regionness, regions.class_probs, regions.word_probs):
        assert ((scores >= 0) & (scores <= 1)).all()
    assert (regions.boxes >= 0).all()
    assert (regions.boxes <= torch.tensor([300, 200, 300, 200])).all()


@settings(max_examples=8)
@given(height=st.sampled_from([1, 2, 31, 400]), width=st.sampled_from([1, 3, 33, 900]))
def test_odd_sizes(extractor: LiteExtractor, height: int, width: int) -> None:
    regions = extractor.extract([photo(height, width)], max_regions=5)[0]
    assert regions.size == (width, height)
    assert torch.isfinite(regions.features).all()
    assert torch.isfinite(regions.boxes).all()
    assert regions.boxes[-1].tolist() == [0, 0, width, height]


def test_flat_images_and_no_images(extractor: LiteExtractor) -> None:
    assert extractor.extract([]) == []
    for value in (0, 255):
        regions = extractor.extract([np.full((50, 70, 3), value, dtype=np.uint8)], max_regions=0)[0]
        assert len(regions) == 1
    with pytest.raises(ValueError, match="negative"):
        extractor.extract([photo(9, 9)], max_regions=-1)


def test_geometry_of_the_whole_image() -> None:
    assert geometry(torch.tensor([[0.0, 0.0, 64.0, 32.0]]), 64, 32)[0].tolist() == [-1, -1, 1, 1, 1, 1, 0.5, 0]


def test_fingerprint_follows_weights_and_settings(folder: Path, extractor: LiteExtractor, tmp_path: Path) -> None:
    torch.manual_seed(1)
    save_lite(tmp_path / "a", LiteNetwork(SMALL), WORDS, Ranking())
    save_lite(tmp_path / "b", extractor.network, WORDS, Ranking(region=0.5))
    prints = {LiteExtractor.load(path).fingerprint for path in (folder, tmp_path / "a", tmp_path / "b")}
    assert len(prints) == 3
    assert LiteExtractor.load(folder).fingerprint == extractor.fingerprint


@pytest.mark.parametrize("damage", ["cut", "noise", "missing", "json", "key", "words", "version"])
def test_damaged_weights_are_refused(folder: Path, tmp_path: Path, damage: str) -> None:
    weights, card = (folder / WEIGHTS).read_bytes(), json.loads((folder / CARD).read_text())
    if damage == "cut":
        weights = weights[: len(weights) // 2]
    elif damage == "noise":
        weights = b"\xff" * 100
    elif damage == "words":
        card["words"] = card["words"][:-1]
    elif damage == "version":
        card["version"] = 99
    elif damage == "key":
        card["shape"]["depht"] = 3
    text = json.dumps(card)[:-20] if damage == "json" else json.dumps(card)
    (tmp_path / CARD).write_text(text)
    if damage != "missing":
        (tmp_path / WEIGHTS).write_bytes(weights)
    with pytest.raises(BadFileError, match="lite extractor"):
        LiteExtractor.load(tmp_path)


def test_the_shipped_extractor(shared: Path) -> None:
    """The weights in the package: small, readable, and a dog is found on a photo of a dog."""
    from deixis.images import load_image

    extractor = load_lite()
    packaged = Path(deixis.regions.__path__[0]).parent / "weights" / "lite" / WEIGHTS
    assert packaged.stat().st_size <= 38_000_000
    folder = shared / "data" / "flickr8k-entities"
    dogs = [
        id
        for id in (folder / "val.txt").read_text().split()
        if all(" dog " in line.lower() for line in (folder / "Sentences" / f"{id}.txt").read_text().splitlines())
    ][:4]
    images = [np.asarray(load_image(folder / "images" / f"{id}.webp")) for id in dogs]
    for regions in extractor.extract(images, max_regions=36):
        assert regions.class_probs is not None
        assert regions.word_probs is not None
        best = int(regions.class_probs[:, regions.class_names.index("dog")].argmax())
        words = regions.word_probs[best]
        assert words[regions.word_names.index("dog")] > words[regions.word_names.index("woman")]
