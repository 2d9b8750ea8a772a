"""DINOv2 ViT-S/14 (Oquab et al., TMLR 2024) in plain torch: a dense teacher, and a trunk to compare with."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.regions.network.trunks.layers import MEAN, SPREAD, Trunk, gelu

PATCH, WIDTH, DEPTH, HEADS, POSITIONS = 14, 384, 12, 6, 37
EPSILON = 1e-6


class Block(nn.Module):
    """Attention over all patches, then a two-layer network; each is scaled before it is added."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)
        self.scale1 = nn.Parameter(torch.ones(WIDTH))
        self.norm2 = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.expand = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)
        self.scale2 = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Refine tokens, (B, L, 384) -> the same."""
        batch, length, _ = x.shape
        mixed = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(*mixed.unbind(0)).transpose(1, 2).reshape(batch, length, WIDTH)
        x = x + self.scale1 * self.project(seen)
        refined: Tensor = x + self.scale2 * self.narrow(gelu(self.expand(self.norm2(x))))
        return refined


class DinoV2(nn.Module):
    """Pixels to one token of 384 numbers for every patch of 14 x 14 pixels."""

    mean: Tensor
    spread: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.first = nn.Parameter(torch.zeros(1, 1, WIDTH))  # the class token, its position added
        self.positions = nn.Parameter(torch.zeros(1, POSITIONS * POSITIONS, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("spread", torch.tensor(SPREAD).view(3, 1, 1), persistent=False)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Give the class token (B, 384) and a map (B, 384, h, w); pixels 0-255 (B, 3, H, W), sides multiples of 14."""
        patches = self.embed((pixels - self.mean) / self.spread)  # (B, 384, h, w)
        high, wide = patches.shape[-2:]
        places = self.positions.view(1, POSITIONS, POSITIONS, WIDTH).permute(0, 3, 1, 2)
        if (high, wide) != (POSITIONS, POSITIONS):
            places = F.interpolate(places, size=(high, wide), mode="bicubic")
        x = (patches + places).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return x[:, 0], x[:, 1:].transpose(1, 2).reshape(-1, WIDTH, high, wide)  # sides stay free


class DinoTrunk(Trunk):
    """DINOv2 as a trunk: its one map serves for three, enlarged and reduced. Too slow to ship; to compare with."""

    channels = (WIDTH, WIDTH, WIDTH)
    stride = 16

    def __init__(self) -> None:
        super().__init__()
        self.network = DinoV2()

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Take pixels 0-255 (B, 3, H, W), sides multiples of 32; give maps (B, 384, H/8.., W/8..)."""
        size = [side // self.stride * PATCH for side in pixels.shape[-2:]]
        middle = self.network(F.interpolate(pixels, size=size, mode="bilinear", antialias=True))[1]
        return F.interpolate(middle, scale_factor=2.0, mode="bilinear"), middle, F.avg_pool2d(middle, 2)

    def let_learn(self, anything: bool) -> None:
        """Let the last third of the blocks learn."""
        self.requires_grad_(False)
        for block in self.network.blocks[DEPTH * 2 // 3 :]:
            block.requires_grad_(anything)
