"""Small files of weights: half precision, and eight bits for the large matrices of the namer."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

PACKED = "namer.network.blocks."
"""What is kept in eight bits: twelve blocks that hold four fifths of all weights and bear it well."""
SCALE = ".scale"
LEVELS = 127


def packed(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights as they are written: the namer's matrices as whole numbers of -127 to 127 with a scale for each row."""
    small: dict[str, Tensor] = {}
    for name, value in state.items():
        if name.startswith(PACKED) and value.ndim == 2:
            small[name], small[name + SCALE] = (part.contiguous() for part in rounded(value.float()))
        else:
            small[name] = value.half().contiguous()
    return small


def rounded(values: Tensor) -> tuple[Tensor, Tensor]:
    """Whole numbers of -127 to 127 and a scale for each row, (N, D) -> (N, D) and (N, 1)."""
    scale = (values.abs().amax(1, keepdim=True) / LEVELS).clamp(min=1e-12)
    return (values / scale).round().to(torch.int8), scale


def unpacked(small: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights as they are computed with; packed again, they are the same."""
    return {
        name: value.float() * small[name + SCALE] if value.dtype == torch.int8 else value.float()
        for name, value in small.items()
        if not name.endswith(SCALE)
    }
