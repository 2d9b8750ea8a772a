"""A light feature pyramid (Lin et al., CVPR 2017) of depthwise-separable convolutions over the trunk's maps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.regions.network.trunks.layers import pointwise

STRIDES = (8, 16, 32, 64)


class Separable(nn.Module):
    """A depthwise and a pointwise convolution with ReLU, around a shortcut when asked."""

    def __init__(self, width: int, kernel: int = 3, shortcut: bool = False) -> None:
        super().__init__()
        self.filter = nn.Conv2d(width, width, kernel, padding=kernel // 2, groups=width)
        self.mix = nn.Conv2d(width, width, 1)
        self.shortcut = shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Filter and mix a map, (B, width, H, W) -> the same."""
        y = F.relu(pointwise(self.mix, self.filter(x)), inplace=not torch.is_grad_enabled())
        return x + y if self.shortcut else y


class Pyramid(nn.Module):
    """Maps of one width at strides 8, 16, 32 and 64; what is coarse and knows more flows down to what is fine."""

    def __init__(self, width: int, channels: Sequence[int]) -> None:
        super().__init__()
        self.lateral = nn.ModuleList(nn.Conv2d(given, width, 1) for given in channels)
        self.refine = nn.ModuleList(Separable(width, kernel, shortcut=True) for kernel in (3, 3, 5, 5))

    def forward(self, levels: tuple[Tensor, Tensor, Tensor]) -> list[Tensor]:
        """Take the trunk's three maps; give four (B, width, ceil(H/stride), ceil(W/stride))."""
        fine, middle, coarse = (pointwise(conv, level) for conv, level in zip(self.lateral, levels, strict=True))
        middle = middle + F.interpolate(coarse, scale_factor=2.0, mode="nearest")
        fine = fine + F.interpolate(middle, scale_factor=2.0, mode="nearest")
        huge = F.avg_pool2d(coarse, 2, ceil_mode=True)
        return [refine(level) for refine, level in zip(self.refine, (fine, middle, coarse, huge), strict=True)]
