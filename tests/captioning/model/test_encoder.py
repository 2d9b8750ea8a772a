from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from deixis.captioning import Captioner, DecoderConfig, EncoderConfig, InputSizes
from deixis.captioning.model.encoder import SelfAttention, locations
from deixis.data.batch import RegionBatch
from deixis.errors import DeixisError
from deixis.types import Regions

Make = Callable[..., Captioner]


def test_grounding_aware_encoding_by_formula(make_captioner: Make, regions: RegionBatch) -> None:
    """Cyclical appendix D: feature, softmax(W_c r) and location, each layer-normalised, concatenated, projected."""
    encoder = make_captioner(encoder=EncoderConfig(similarity="learned", learned_classes=4)).encoder
    encoded = encoder(regions)
    f = regions.features[0, 2]
    box = regions.boxes[0, 2] / torch.tensor([100.0, 120.0, 100.0, 120.0])

    def norm(x: torch.Tensor, layer: torch.nn.LayerNorm) -> torch.Tensor:
        return (x - x.mean()) / (x.var(unbiased=False) + 1e-5).sqrt() * layer.weight + layer.bias

    logits = encoder.classifier.weight @ f + encoder.classifier.bias
    place = torch.cat([box, torch.zeros(1)])
    parts = [
        norm(F.relu(encoder.feature.weight @ f + encoder.feature.bias), encoder.feature_norm),
        norm(logits.softmax(0), encoder.similarity_norm),
        norm(F.relu(encoder.location.weight @ place + encoder.location.bias), encoder.location_norm),
    ]
    expected = F.relu(encoder.join.weight @ torch.cat(parts) + encoder.join.bias)
    assert torch.allclose(encoded.regions[0, 2], expected, atol=1e-5)
    assert encoded.class_logits is not None
    assert torch.allclose(encoded.class_logits[0, 2], logits, atol=1e-5)
    assert regions.global_features is not None
    pooled = F.relu(encoder.image(regions.global_features[0, 0]))
    assert torch.allclose(encoded.pooled[0], pooled, atol=1e-6)


@pytest.mark.parametrize(
    "config",
    [
        EncoderConfig(location=False),
        EncoderConfig(feature="none"),
        EncoderConfig(feature="class"),
        EncoderConfig(similarity="classes"),
        EncoderConfig(similarity="words"),
        EncoderConfig(similarity="classes+words", feature="none", location=False),
        EncoderConfig(self_attention_layers=2, self_attention_heads=6),
    ],
    ids=str,
)
def test_every_part_can_be_switched(config: EncoderConfig, make_captioner: Make, regions: RegionBatch) -> None:
    model = make_captioner(encoder=config)
    encoded = model.encode(regions)
    assert encoded.regions.shape == (3, 7, 16)
    model.generate(regions)
    moved = replace(regions, boxes=regions.boxes + 7)
    assert torch.equal(model.encode(moved).regions, encoded.regions) != config.location
    other = replace(regions, features=regions.features + 1)
    assert torch.equal(model.encode(other).regions, encoded.regions) == (config.feature != "given")


def test_up_down_pools_the_encoded_regions(make_captioner: Make, regions: RegionBatch) -> None:
    encoded = make_captioner(decoder=DecoderConfig(form="updown")).encode(regions)
    assert torch.allclose(encoded.pooled[1], encoded.regions[1, :5].mean(0), atol=1e-6)


def test_unsure_regions_are_not_looked_at(make_captioner: Make, regions: RegionBatch) -> None:
    model = make_captioner(encoder=EncoderConfig(min_objectness=0.2))
    objectness = torch.full((3, 7), 0.9)
    objectness[0, :4] = 0.2  # not above the threshold
    objectness[2] = 0.0  # none is sure: all are kept
    encoded = model.encode(replace(regions, objectness=objectness))
    assert encoded.mask.tolist() == [[False] * 4 + [True] * 3, [True] * 5 + [False] * 2, [True] * 7]
    generated = model.generate(replace(regions, objectness=objectness))
    assert (generated.attention[:, 0, ..., :4] == 0).all()


def test_self_attention_ignores_padding_and_matches_a_formula() -> None:
    torch.manual_seed(0)
    layer = SelfAttention(7, 3, 0.0)  # 7 does not divide by 3
    regions = torch.randn(1, 4, 7)
    mask = torch.tensor([[True, True, True, False]])
    out = layer(regions, mask)
    changed = regions.clone()
    changed[0, 3] = 99.0
    assert torch.allclose(layer(changed, mask)[0, :3], out[0, :3], atol=1e-6)
    q, k, v = (part.view(4, 3, 3) for part in layer.project(regions)[0].chunk(3, -1))
    heads = [
        torch.softmax(q[:, h] @ k[:3, h].T / 3**0.5, -1) @ v[:3, h]
        for h in range(3)
    ]  # fmt: skip
    x = layer.norm(regions[0] + layer.join(torch.cat(heads, -1)))
    expected = layer.final_norm(x + layer.contract(F.relu(layer.expand(x))))
    assert torch.allclose(out[0, :3], expected[:3], atol=1e-5)


def test_frames_go_through_a_bi_gru_that_padding_does_not_reach(
    make_captioner: Make, make_regions: Callable[..., RegionBatch]
) -> None:
    clips = make_regions(images=2, count=6, frames=3)
    model = make_captioner(encoder=EncoderConfig(map="frames"))
    frame_mask = torch.tensor([[True, True, True], [True, True, False]])
    encoded = model.encode(replace(clips, frame_mask=frame_mask))
    assert clips.global_features is not None
    assert encoded.cells is not None
    alone = replace(clips, frame_mask=frame_mask[:, :2], global_features=clips.global_features[:, :2])
    other = model.encode(alone)
    assert other.cells is not None
    assert torch.allclose(encoded.cells[1, :2], other.cells[1], atol=1e-6)
    assert not torch.allclose(encoded.cells[0, :2], other.cells[0], atol=1e-4)
    steps = F.relu(model.encoder.cell(clips.global_features[0]))
    expected, _ = model.encoder.frames(steps.unsqueeze(0))
    assert torch.allclose(encoded.cells[0], expected[0], atol=1e-6)


def test_locations_know_the_frame(make_regions: Callable[..., RegionBatch]) -> None:
    clips = make_regions(images=1, count=6, frames=3)
    assert torch.allclose(locations(clips)[0, :, 4], torch.tensor([0, 1, 2, 0, 1, 2]) / 3)


def test_what_regions_lack_is_named(make_captioner: Make, regions: RegionBatch) -> None:
    with pytest.raises(DeixisError, match="class_probs"):
        make_captioner(sizes=InputSizes(words=24, features=12), encoder=EncoderConfig(similarity="classes"))
    with pytest.raises(DeixisError, match="switched off"):
        make_captioner(encoder=EncoderConfig(feature="none", location=False))
    model = make_captioner(encoder=EncoderConfig(similarity="words"))
    with pytest.raises(DeixisError, match="word_probs"):
        model.encode(replace(regions, word_probs=None))


def test_sizes_are_read_off_regions() -> None:
    regions = Regions(
        torch.zeros(3, 4), torch.zeros(3, 11), torch.zeros(3), (5, 5), "x", class_probs=torch.zeros(3, 2),
        global_features=torch.zeros(1, 7),
    )  # fmt: skip
    assert InputSizes.of(regions, 9) == InputSizes(words=9, features=11, classes=2, global_features=7)
