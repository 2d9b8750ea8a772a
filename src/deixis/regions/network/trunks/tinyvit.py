"""TinyViT-5M (Wu et al., ECCV 2022) in plain torch: convolutions first, then attention in windows.

BatchNorm is folded into the convolutions: the published weights come so, and what is trained is then exactly what is
run. Windows are laid out evenly instead of padded to the published 7 or 14 cells a side: a map of 24 x 18 cells is cut
into four windows of 12 x 9, and the learned attention biases, which know only distances, are read where they apply. No
cell is wasted on padding at the sizes photos have.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.regions.network.trunks.layers import MEAN, SPREAD, Trunk, gelu, pointwise

WIDTHS = (64, 128, 160, 320)  # paper, section 4.1: embedded dimension of each stage of the 5M model
DEPTHS = (2, 2, 6, 2)
WINDOWS = (7, 7, 14, 7)
HEAD_WIDTH = 32
EXPANSION = 4


class InvertedBlock(nn.Module):
    """Widen, filter, narrow (MBConv), around a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.expand = nn.Conv2d(width, width * EXPANSION, 1)
        self.filter = nn.Conv2d(width * EXPANSION, width * EXPANSION, 3, padding=1, groups=width * EXPANSION)
        self.project = nn.Conv2d(width * EXPANSION, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Refine a map, (B, width, H, W) -> the same."""
        y = gelu(self.filter(gelu(pointwise(self.expand, x))))
        return gelu(x + pointwise(self.project, y))


class Merge(nn.Module):
    """Halve a map's sides and change its width."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.expand = nn.Conv2d(width, out, 1)
        self.filter = nn.Conv2d(out, out, 3, stride=2, padding=1, groups=out)
        self.project = nn.Conv2d(out, out, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Merge cells, (B, width, H, W) -> (B, out, H/2, W/2)."""
        return pointwise(self.project, gelu(self.filter(gelu(pointwise(self.expand, x)))))


class WindowAttention(nn.Module):
    """Self-attention among the cells of a window, with a learned bias for every distance between two cells."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        self.heads, self.window = width // HEAD_WIDTH, window
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.biases = nn.Parameter(torch.zeros(self.heads, window * window))

    def forward(self, x: Tensor, rows: int, columns: int) -> Tensor:
        """Let windows (M, rows * columns, width) attend to themselves."""
        count, cells, width = x.shape
        bias = self.biases[:, distances(rows, columns, self.window, x.device)]  # (heads, cells, cells)
        mixed = self.qkv(self.norm(x)).view(count, cells, self.heads, 3, HEAD_WIDTH).permute(3, 0, 2, 1, 4)
        query, key, value = mixed.unbind(0)  # (M, heads, cells, HEAD_WIDTH)
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=bias.to(query.dtype)[None])
        return self.project(out.transpose(1, 2).reshape(count, cells, width))  # type: ignore[no-any-return]


def distances(rows: int, columns: int, window: int, device: torch.device | None = None) -> Tensor:
    """Which learned bias belongs to each pair of cells of a window: |dy| * window + |dx|, (cells, cells)."""
    cell = torch.arange(rows * columns, device=device)
    y, x = cell // columns, cell % columns
    return (y[:, None] - y).abs() * window + (x[:, None] - x).abs()


def even(side: int, window: int) -> tuple[int, int]:
    """Cut a side into as few equal windows of at most `window` cells as cover it: their number and their length."""
    number = (side + window - 1) // window  # rounded up without a negative number: ONNX rounds those towards zero
    return number, (side + number - 1) // number


class WindowBlock(nn.Module):
    """Attention in windows, a depthwise filter that lets neighbouring windows meet, and a two-layer network."""

    def __init__(self, width: int, window: int) -> None:
        super().__init__()
        self.window = window
        self.attention = WindowAttention(width, window)
        self.filter = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, width * EXPANSION)
        self.project = nn.Linear(width * EXPANSION, width)

    def forward(self, x: Tensor) -> Tensor:
        """Refine a map, (B, width, H, W) -> the same."""
        x = x + self._attend(x)
        x = self.filter(x).permute(0, 2, 3, 1)  # (B, H, W, width)
        refined: Tensor = x + self.project(gelu(self.expand(self.norm(x))))
        return refined.permute(0, 3, 1, 2)

    def _attend(self, x: Tensor) -> Tensor:
        batch, width, high, wide = x.shape
        (down, rows), (across, columns) = even(high, self.window), even(wide, self.window)
        cells = x.permute(0, 2, 3, 1)  # (B, H, W, width)
        missing = down * rows - high, across * columns - wide
        if torch.onnx.is_in_onnx_export() or any(missing):  # a traced network pads by nothing where nothing is missing
            cells = F.pad(cells, (0, 0, 0, missing[1], 0, missing[0]))
        cells = cells.reshape(batch, down, rows, across, columns, width).transpose(2, 3)
        out = self.attention(cells.reshape(-1, rows * columns, width), rows, columns)
        out = out.view(batch, down, across, rows, columns, width).transpose(2, 3)
        out = out.reshape(batch, down * rows, across * columns, width)[:, :high, :wide]
        placed: Tensor = out.permute(0, 3, 1, 2)
        return placed


class TinyViT(Trunk):
    """Pixels to maps at strides 8, 16 and 32."""

    channels = (WIDTHS[1], WIDTHS[2], WIDTHS[3])
    mean: Tensor
    spread: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, WIDTHS[0] // 2, 3, stride=2, padding=1)
        self.second = nn.Conv2d(WIDTHS[0] // 2, WIDTHS[0], 3, stride=2, padding=1)
        self.stages = nn.ModuleList([nn.Sequential(*(InvertedBlock(WIDTHS[0]) for _ in range(DEPTHS[0])))])
        for before, width, depth, window in zip(WIDTHS, WIDTHS[1:], DEPTHS[1:], WINDOWS[1:], strict=False):
            blocks = (WindowBlock(width, window) for _ in range(depth))
            self.stages.append(nn.Sequential(Merge(before, width), *blocks))
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1), persistent=False)
        self.register_buffer("spread", torch.tensor(SPREAD).view(3, 1, 1), persistent=False)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Take pixels 0-255 (B, 3, H, W), sides multiples of 32; give (B, 128 | 160 | 320, H/8.., W/8..)."""
        x = self.second(gelu(self.first((pixels - self.mean) / self.spread)))
        levels = []
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        return levels[1], levels[2], levels[3]

    def let_learn(self, anything: bool) -> None:
        """Let the stages from stride 8 on learn: what comes before holds 2 % of the weights and costs most."""
        self.requires_grad_(anything)
        for early in (self.first, self.second, self.stages[0]):
            early.requires_grad_(False)
