"""A second look at the photo, to say what its boxes show: DINOv2's tokens, and a head that learns caption words.

Boxes and names ask for different eyes. Small things need a fine map, and the trunk of the proposals has one; names need
a network that has seen the world, and a coarse map will do. So the proposals keep their trunk, and a frozen DINOv2
ViT-S/14 (Oquab et al., TMLR 2024) looks at the same photo once more, one patch for about 24 x 24 pixels.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.regions.network.roi import roi_align
from deixis.regions.network.trunks.dinov2 import PATCH, WIDTH, DinoV2

NAMERS = ("", "dinov2-s")


class Namer(nn.Module):
    """Tokens of a photo, and what they and the proposals' own feature say about boxes together."""

    def __init__(self, stride: int, given: int, hidden: int, learned: int) -> None:
        super().__init__()
        self.stride = stride
        self.network = DinoV2()
        self.hidden = nn.Linear(given + WIDTH, hidden) if learned else None
        self.learned = nn.Linear(hidden, learned) if learned else None

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """The photo's token (B, 384) and the map of its patches (B, 384, h, w); pixels 0-255 (B, 3, H, W)."""
        high, wide = ((side + self.stride // 2) // self.stride for side in pixels.shape[-2:])
        whole, tokens = self.network(smaller(pixels, high * PATCH, wide * PATCH).to(self.network.first.dtype))
        return whole.float(), tokens.float()

    def pool(self, tokens: Tensor, boxes: Tensor, image_of: Tensor, shape: Tensor) -> Tensor:
        """The mean token of each box, (N, 4) in pixels of an input of ``shape`` (width, height) -> (N, 384)."""
        grid = torch.stack([torch.as_tensor(tokens.shape[-1]), torch.as_tensor(tokens.shape[-2])]).to(boxes)
        return roi_align(tokens, boxes * (grid / shape.to(boxes)).repeat(2), image_of, 1.0, 1, 4).flatten(1)

    def learn(self, given: Tensor, pooled: Tensor) -> Tensor:
        """What captions have taught about regions, (N, given) and (N, 384) -> (N, learned); till then, the given."""
        if self.hidden is None or self.learned is None:
            return given
        return F.relu(self.learned(F.relu(self.hidden(torch.cat([given, pooled], 1)))))


def smaller(pixels: Tensor, height: int, width: int) -> Tensor:
    """Resize (B, C, H, W) with antialiasing, as two matrix products: the same in torch and in ONNX at every size."""
    rows, columns = (
        _weights(have, want, pixels) for have, want in zip(pixels.shape[-2:], (height, width), strict=True)
    )
    return rows @ pixels @ columns.transpose(0, 1)


def _weights(have: int, want: int, like: Tensor) -> Tensor:
    """How much each of the pixels there are counts for each of the pixels wanted, (want, have): a triangle filter."""
    scale = torch.as_tensor(have).to(like) / torch.as_tensor(want).to(like)
    centres = (torch.arange(want, device=like.device).to(like) + 0.5) * scale  # (want,)
    places = torch.arange(have, device=like.device).to(like) + 0.5  # (have,)
    weights = (1 - (centres.unsqueeze(1) - places).abs() / scale.clamp(min=1.0)).clamp(min=0)
    return weights / weights.sum(1, keepdim=True)
