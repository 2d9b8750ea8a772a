"""Small detectors with random weights, saved and loaded through the real classes of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from deixis.errors import DeixisError
from deixis.interfaces import Extractor
from deixis.regions.adapters.hf_detectors import HfExtractor, Preparation
from deixis.regions.registry import build_extractor

transformers: Any = pytest.importorskip("transformers", reason="needs transformers: pip install 'deixis[hf]'")

LABELS = {0: "cat", 1: "dog", 2: "red ball"}
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "?", "object", "thing", "person", "animal", "place"]


def small_model(kind: str) -> Any:
    torch.manual_seed(0)
    resnet = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8, 8, 16], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage4"] if kind in ("detr", "conditional_detr") else ["stage2", "stage3", "stage4"],
    )  # fmt: skip
    layers: dict[str, Any] = {
        "encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "d_model": 32,
        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "num_queries": 12,
    }  # fmt: skip
    if kind == "detr":
        config = transformers.DetrConfig(backbone_config=resnet, id2label=LABELS, **layers)
        return transformers.DetrForObjectDetection(config)
    if kind == "conditional_detr":
        config = transformers.ConditionalDetrConfig(backbone_config=resnet, id2label=LABELS, **layers)
        return transformers.ConditionalDetrForObjectDetection(config)
    if kind == "deformable_detr":
        config = transformers.DeformableDetrConfig(
            backbone_config=resnet, id2label=LABELS, num_feature_levels=3, **layers
        )
        return transformers.DeformableDetrForObjectDetection(config)
    if kind == "yolos":
        config = transformers.YolosConfig(
            hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=[64, 64],
            num_detection_tokens=9, id2label=LABELS,
        )  # fmt: skip
        return transformers.YolosForObjectDetection(config)
    if kind == "owlv2":
        part = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        config = transformers.Owlv2Config(
            vision_config=part | {"image_size": 64, "patch_size": 16},
            text_config=part | {"vocab_size": 50, "max_position_embeddings": 8},
            projection_dim=16,
        )
        return transformers.Owlv2ForObjectDetection(config)
    text = transformers.BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    config = transformers.GroundingDinoConfig(
        backbone_config=resnet, text_config=text, num_feature_levels=3, max_text_len=32, **layers
    )
    return transformers.GroundingDinoForObjectDetection(config)


def save(kind: str, folder: Path) -> str:
    small_model(kind).save_pretrained(folder)
    size = {"height": 64, "width": 64} if kind == "owlv2" else {"shortest_edge": 64, "longest_edge": 96}
    prepare = {"size": size, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25], "do_normalize": True}
    (folder / "preprocessor_config.json").write_text(json.dumps(prepare))
    if kind == "grounding-dino":
        (folder / "vocab.txt").write_text("\n".join(VOCABULARY))
        transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return f"hf:{folder}"


def photo(seed: int, width: int, height: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)


KINDS = ("detr", "conditional_detr", "deformable_detr", "yolos", "owlv2", "grounding-dino")


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_detector_gives_regions(kind: str, tmp_path: Path) -> None:
    name = save(kind, tmp_path)
    extractor = build_extractor(name)
    assert isinstance(extractor, Extractor)
    assert extractor.fingerprint == build_extractor(name).fingerprint
    assert extractor.fingerprint.startswith(f"hf:{kind}:")
    photos = [photo(0, 90, 70), photo(1, 50, 120)]
    together = extractor.extract(photos, max_regions=5)
    for at, (image, regions) in enumerate(zip(photos, together, strict=True)):
        alone = extractor.extract([image], max_regions=5)[0]
        assert torch.equal(regions.boxes, alone.boxes), "what else is in the batch must not matter"
        assert torch.equal(regions.features, alone.features)
        width, height = [(90, 70), (50, 120)][at]
        assert regions.size == (width, height)
        assert 1 <= len(regions) <= 6
        assert regions.boxes[-1].tolist() == [0, 0, width, height]
        assert (regions.boxes[:, 2:] <= torch.tensor([width, height])).all()
        assert (regions.boxes[:, :2] >= 0).all()
        assert (regions.objectness[:-1].diff() <= 0).all()
        assert ((regions.objectness >= 0) & (regions.objectness <= 1)).all()
        assert torch.isfinite(regions.features).all()
        if kind in ("owlv2", "grounding-dino"):
            assert regions.class_probs is None
        else:
            assert regions.class_probs is not None
            assert regions.class_names == ("cat", "dog", "red ball")
            assert regions.class_probs.shape == (len(regions), 3)


def test_boxes_scores_and_features_of_detr_are_its_own(tmp_path: Path) -> None:
    extractor = HfExtractor.load(save("detr", tmp_path).removeprefix("hf:"))
    image = photo(2, 96, 64)  # already the size the network wants, so that nothing is resized
    regions = extractor.extract([image], max_regions=12)[0]
    pixels = (torch.from_numpy(image.copy()).permute(2, 0, 1)[None] / 255 - 0.5) / 0.25
    model: Any = extractor.model
    with torch.no_grad():
        out = model(pixel_values=pixels)
    probs = out.logits[0].softmax(-1)
    best = int((1 - probs[:, -1]).argmax())
    assert regions.class_probs is not None
    torch.testing.assert_close(regions.objectness[0], 1 - probs[best, -1])
    torch.testing.assert_close(regions.class_probs[0], probs[best, :3])
    torch.testing.assert_close(regions.features[0], out.last_hidden_state[0, best])
    x, y, w, h = (out.pred_boxes[0, best] * torch.tensor([96.0, 64, 96, 64])).tolist()
    expected = torch.tensor([x - w / 2, y - h / 2, x + w / 2, y + h / 2])
    expected = torch.minimum(expected.clip(min=0), torch.tensor([96.0, 64, 96, 64]))
    torch.testing.assert_close(regions.boxes[0], expected)


def test_pictures_are_prepared_as_the_configuration_says() -> None:
    plain = Preparation.from_config({"size": 100, "max_size": 120, "do_normalize": False}, square=False)
    pixels, shares = plain(photo(0, 80, 50))
    assert pixels.shape == (1, 3, 75, 120)  # the longer side may have 120
    assert shares == (80, 50)
    assert 0 <= float(pixels.min()) <= float(pixels.max()) <= 1
    square = Preparation.from_config({"size": {"height": 32, "width": 32}}, square=True)
    pixels, shares = square(photo(0, 80, 50))
    assert pixels.shape == (1, 3, 32, 32)
    assert shares == (80, 80)  # boxes are shares of the padded square


def test_other_models_and_broken_folders_are_refused(tmp_path: Path) -> None:
    transformers.BertConfig().save_pretrained(tmp_path)
    with pytest.raises(DeixisError, match="is a bert, not one of the detectors"):
        build_extractor(f"hf:{tmp_path}")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DeixisError, match="cannot be loaded"):
        build_extractor(f"hf:{tmp_path}")
