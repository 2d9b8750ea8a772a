"""The namer: resizing against torch's own, tokens pooled in boxes, and an extractor that carries one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from deixis.errors import BadFileError, DeixisError
from deixis.regions.lite import LiteExtractor, save_lite
from deixis.regions.network.detector import LiteNetwork, LiteShape, build_namer
from deixis.regions.network.namer import Namer, smaller
from deixis.regions.network.select import Ranking

SMALL = {"pyramid": 16, "depth": 1, "describe": 16, "hidden": 32, "feature": 24, "words": 5}


@pytest.mark.parametrize("size", [(70, 98), (182, 238), (320, 416), (400, 500)])
def test_resizing_is_torchs_antialiased_one(size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    pixels = torch.rand(2, 3, 320, 416) * 255
    wanted = F.interpolate(pixels, size=size, mode="bilinear", antialias=True)
    torch.testing.assert_close(smaller(pixels, *size), wanted, atol=1e-2, rtol=1e-4)


def test_a_patch_for_about_so_many_pixels() -> None:
    torch.manual_seed(0)
    namer = Namer(stride=32, given=8, hidden=16, learned=4).eval()
    with torch.inference_mode():
        whole, tokens = namer(torch.rand(2, 3, 96, 160) * 255)
    assert whole.shape == (2, 384)
    assert tokens.shape == (2, 384, 3, 5)


def test_the_token_of_a_box_is_the_mean_of_its_patches() -> None:
    namer = Namer(stride=24, given=8, hidden=16, learned=0)
    tokens = torch.arange(12.0).view(1, 1, 3, 4).expand(1, 384, 3, 4)  # a photo of 96 x 72 pixels
    boxes = torch.tensor([[0.0, 0.0, 24.0, 24.0], [48.0, 24.0, 96.0, 72.0]])
    pooled = namer.pool(tokens, boxes, torch.zeros(2, dtype=torch.long), torch.tensor([96, 72]))
    # Reads lie within the box, and beyond the outermost centres the border repeats: patches 0 (and a little of its
    # neighbours), and 6 7 10 11.
    assert float(pooled[1, 0]) == pytest.approx((6 + 7 + 10 + 11) / 4, abs=0.4)
    assert 0 <= float(pooled[0, 0]) < 1
    torch.testing.assert_close(namer.learn(torch.ones(2, 8), pooled), torch.ones(2, 8))  # not taught yet


def test_what_is_learned_by_hand() -> None:
    torch.manual_seed(1)
    namer = Namer(stride=24, given=8, hidden=16, learned=4)
    assert namer.hidden is not None
    assert namer.learned is not None
    given, pooled = torch.randn(3, 8), torch.randn(3, 384)
    hidden = (torch.cat([given, pooled], 1) @ namer.hidden.weight.T + namer.hidden.bias).clamp(min=0)
    wanted = (hidden @ namer.learned.weight.T + namer.learned.bias).clamp(min=0)
    torch.testing.assert_close(namer.learn(given, pooled), wanted)


def test_an_extractor_with_a_namer_is_written_and_read(tmp_path: Path) -> None:
    torch.manual_seed(2)
    shape = LiteShape(**SMALL, namer="dinov2-s", namer_stride=48, namer_hidden=16, learned=12)  # type: ignore[arg-type]
    save_lite(tmp_path, LiteNetwork(shape), list("abcde"), Ranking())
    extractor = LiteExtractor.load(tmp_path)
    photo = np.random.default_rng(0).integers(0, 255, (120, 160, 3), dtype=np.uint8)
    (alone,) = extractor.extract([photo], max_regions=7)
    assert alone.features.shape == (8, 384 + 12)
    assert alone.global_features is not None
    assert alone.global_features.shape == (1, 24 + 384)
    assert alone.class_probs is not None
    assert alone.class_probs.shape == (8, 80)
    again, _ = extractor.extract([photo, photo[::-1].copy()], max_regions=7)  # neighbours change nothing
    torch.testing.assert_close(again.features, alone.features, atol=1e-4, rtol=1e-4)
    half = LiteExtractor.load(tmp_path).computing_in("bf16").extract([photo], max_regions=7)[0]
    assert half.boxes.shape == alone.boxes.shape  # which boxes, rounding decides: an untaught finder likes all alike
    assert torch.equal(half.boxes[-1], alone.boxes[-1])
    assert float(F.cosine_similarity(half.features[-1, :384], alone.features[-1, :384], dim=0)) > 0.99


def test_an_unknown_namer_is_named() -> None:
    with pytest.raises(DeixisError, match="unknown namer 'clip'; known: dinov2-s"):
        build_namer(LiteShape(namer="clip"))


def test_a_card_that_lies_about_its_namer_is_refused(tmp_path: Path) -> None:
    shape = LiteShape(**SMALL)  # type: ignore[arg-type]
    save_lite(tmp_path, LiteNetwork(shape), list("abcde"), Ranking())
    card = tmp_path / "regions.json"
    card.write_text(card.read_text().replace('"namer": ""', '"namer": "dinov2-s"'))
    with pytest.raises(BadFileError, match="cannot be read"):
        LiteExtractor.load(tmp_path)
