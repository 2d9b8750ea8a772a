"""What the trunks share: the class they are of, and two layers."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

MEAN, SPREAD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)  # ImageNet's, for pixels 0-255


class Trunk(nn.Module):
    """Turns pixels 0-255 (B, 3, H, W), sides multiples of 32, into maps at strides 8, 16 and 32."""

    channels: tuple[int, int, int]

    def let_learn(self, anything: bool) -> None:
        """Freeze everything, or all but what is worth its cost in the backward pass."""
        self.requires_grad_(anything)


def pointwise(conv: nn.Module, x: Tensor) -> Tensor:
    """A 1x1 convolution as a matrix product over channels-last pixels: much quicker than torch's own on one thread."""
    assert isinstance(conv, nn.Conv2d)  # module lists forget what they hold
    return F.linear(x.permute(0, 2, 3, 1), conv.weight.flatten(1), conv.bias).permute(0, 3, 1, 2)


def gelu(x: Tensor) -> Tensor:
    """The Gaussian error linear unit (Hendrycks and Gimpel, 2016), the exact form."""
    return F.gelu(x)
