"""Products in eight bits: a matrix that is kept in eight bits meets tokens that are rounded to eight bits as they come.

Every token has a scale of its own, so a large one takes no precision from the others, and what a photo shows does not
depend on the photos beside it. Whole numbers are multiplied and summed exactly, on every processor alike.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from deixis.regions.network.packing import rounded

POSSIBLE = hasattr(torch, "_int_mm")
"""Whether this torch multiplies whole numbers; where it does not, everything stays in single precision."""


class EightBitLinear(nn.Module):
    """The product of tokens and a matrix in whole numbers of -127 to 127."""

    matrix: Tensor  # (in, out) whole numbers
    scale: Tensor  # (out,)

    def __init__(self, exact: nn.Linear) -> None:
        super().__init__()
        self.exact = exact
        numbers, scale = rounded(exact.weight.detach())
        self.register_buffer("matrix", numbers.t(), persistent=False)
        self.register_buffer("scale", scale.squeeze(1), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        numbers, scale = rounded(tokens.flatten(0, -2))
        summed = torch._int_mm(numbers, self.matrix).float()  # (N, out)
        return torch.addcmul(self.exact.bias, summed, scale * self.scale).view(*tokens.shape[:-1], -1)


def in_eight_bits(network: nn.Module) -> None:
    """Let all large products of a network be in eight bits."""
    for block, name, part in _parts(network):
        if isinstance(part, nn.Linear) and not isinstance(block, EightBitLinear):
            setattr(block, name, EightBitLinear(part))


def in_single_precision(network: nn.Module) -> None:
    """Undo :func:`in_eight_bits`: the weights are exactly what they were."""
    for block, name, part in _parts(network):
        if isinstance(part, EightBitLinear):
            setattr(block, name, part.exact)


def _parts(network: nn.Module) -> list[tuple[nn.Module, str, nn.Module]]:
    return [(block, name, part) for block in network.modules() for name, part in block.named_children()]
