"""The network of the `lite` extractor: trunk, pyramid, proposals, and a head that describes regions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.errors import DeixisError
from deixis.regions.network.namer import NAMERS, Namer
from deixis.regions.network.proposals import ProposalHead, cells_of, decode
from deixis.regions.network.pyramid import Pyramid, Separable
from deixis.regions.network.roi import roi_align
from deixis.regions.network.select import image_box
from deixis.regions.network.trunks.dinov2 import WIDTH
from deixis.regions.network.trunks.layers import pointwise
from deixis.regions.network.trunks.trunk import build_trunk

GEOMETRY = 8  # numbers that say where a box lies and how large it is


@dataclass(frozen=True, slots=True)
class LiteShape:
    """The sizes of the network; all of them are written beside the weights."""

    pyramid: int = 96
    depth: int = 2
    describe: int = 224
    bins: int = 3
    hidden: int = 512
    feature: int = 384
    classes: int = 80
    words: int = 1000
    trunk: str = "efficientnet-lite0"
    namer: str = ""
    """A second network that looks at the photo, to name what is in boxes (``namer.py``); none for ""."""
    namer_stride: int = 24
    """Pixels of the input, along a side, for every patch the namer looks at."""
    namer_hidden: int = 1024
    learned: int = 384
    """Numbers of a region's feature that the namer's head learns from captions; 0 for a namer not taught yet."""

    @property
    def own(self) -> int:
        """How many numbers the words of a region are read from."""
        return self.learned if self.namer and self.learned else self.feature

    @property
    def given(self) -> int:
        """How many numbers describe a region."""
        return WIDTH + self.own if self.namer else self.own


@dataclass(frozen=True, slots=True)
class Dense:
    """What one pass over the pixels gives; A cells with three candidates each."""

    scores: Tensor  # (B, A, 3) logits
    boxes: Tensor  # (B, A, 3, 4) in input pixels
    describing: Tensor  # (B, describe, H/16, W/16)
    fine: Tensor  # (B, pyramid, H/8, W/8)
    whole: Tensor | None = None  # (B, 384) the namer's token of each photo
    tokens: Tensor | None = None  # (B, 384, h, w) the namer's map


@dataclass(frozen=True, slots=True)
class Described:
    """What N boxes show."""

    features: Tensor  # (N, given)
    classes: Tensor  # (N, classes) probabilities
    words: Tensor  # (N, words) probabilities


class RegionHead(nn.Module):
    """Describes regions: pooled maps and the box's place become a feature, which names classes and caption words."""

    def __init__(self, shape: LiteShape) -> None:
        super().__init__()
        self.bins = shape.bins
        pooled = (shape.describe + shape.pyramid) * shape.bins**2
        self.hidden = nn.Linear(pooled + GEOMETRY, shape.hidden)
        self.feature = nn.Linear(shape.hidden, shape.feature)
        self.classes = nn.Linear(shape.own, shape.classes)
        self.words = nn.Linear(shape.own, shape.words)
        nn.init.constant_(self.classes.bias, -4.0)
        nn.init.constant_(self.words.bias, -4.0)
        for head in (self.classes, self.words):
            nn.init.normal_(head.weight, std=0.01)

    def pool(self, dense: Dense, boxes: Tensor, image_of: Tensor) -> Tensor:
        """Read the boxes (N, 4) from both maps and add their geometry, (N, pooled + 8)."""
        coarse = roi_align(dense.describing, boxes, image_of, 1 / 16, self.bins).flatten(1)
        fine = roi_align(dense.fine, boxes, image_of, 1 / 8, self.bins).flatten(1)
        height, width = dense.describing.shape[-2] * 16, dense.describing.shape[-1] * 16
        return torch.cat([coarse, fine, geometry(boxes, width, height)], 1)

    def describe(self, pooled: Tensor) -> Tensor:
        """The region feature, (N, feature)."""
        feature: Tensor = self.feature(F.relu(self.hidden(pooled)))
        return F.relu(feature)


def geometry(boxes: Tensor, width: int, height: int) -> Tensor:
    """Corners, sides, area and slenderness of boxes (N, 4), all about -1 to 1, (N, 8)."""
    share = boxes / image_box(width, height, boxes)[:, [2, 3, 2, 3]]
    sides = (share[:, 2:] - share[:, :2]).clamp(min=1e-3)
    area = sides.prod(1, keepdim=True).log() / 8 + 0.5
    slender = (sides[:, :1] / sides[:, 1:]).log() / 4
    return torch.cat([share * 2 - 1, sides * 2 - 1, area, slender], 1)


class LiteNetwork(nn.Module):
    """Pixels to candidates and maps (:meth:`forward`); boxes to descriptions (`network.regions`)."""

    def __init__(self, shape: LiteShape | None = None) -> None:
        super().__init__()
        self.shape = shape or LiteShape()
        self.trunk = build_trunk(self.shape.trunk)
        channels = self.trunk.channels
        self.pyramid = Pyramid(self.shape.pyramid, channels)
        self.proposals = ProposalHead(self.shape.pyramid, self.shape.depth)
        self.middle = nn.Conv2d(channels[1], self.shape.describe, 1)
        self.coarse = nn.Conv2d(channels[2], self.shape.describe, 1)
        self.blend = Separable(self.shape.describe, 3, shortcut=True)
        self.whole = nn.Linear(self.shape.describe, self.shape.feature)
        self.regions = RegionHead(self.shape)
        self.namer = build_namer(self.shape)

    def describe_boxes(self, dense: Dense, boxes: Tensor, image_of: Tensor) -> Described:
        """Say what boxes (N, 4) of the images ``image_of`` (N,) show."""
        head = self.regions
        own = features = head.describe(head.pool(dense, boxes, image_of))
        if self.namer is not None:
            tokens, own = self.name(dense, own, boxes, image_of)
            features = torch.cat([tokens, own], 1)
        classes = torch.sigmoid(head.classes(own)) ** 2  # the head learns the square root of the teacher's score
        return Described(features, classes, torch.sigmoid(head.words(own)))

    def name(self, dense: Dense, features: Tensor, boxes: Tensor, image_of: Tensor) -> tuple[Tensor, Tensor]:
        """The namer's token of every box (N, 384), and what it and the feature say together (N, learned)."""
        assert self.namer is not None
        assert dense.tokens is not None
        height, width = dense.describing.shape[-2] * 16, dense.describing.shape[-1] * 16
        shape = torch.stack([torch.as_tensor(width), torch.as_tensor(height)])
        tokens = self.namer.pool(dense.tokens, boxes, image_of, shape)
        return tokens, self.namer.learn(features, tokens)

    def describe_whole(self, dense: Dense) -> Tensor:
        """The global feature of each image, (B, feature), and the namer's token of it, if there is one."""
        own = F.relu(self.whole(dense.describing.mean((2, 3))))
        return own if dense.whole is None else torch.cat([own, dense.whole], 1)

    def forward(self, pixels: Tensor) -> Dense:
        """Take pixels 0-255 (B, 3, H, W), sides multiples of 32."""
        levels = self.trunk(pixels)
        pyramid = self.pyramid(levels)
        scores, offsets = self.proposals(pyramid)
        cells = cells_of(pixels.shape[-2], pixels.shape[-1], pixels.device)
        above = F.interpolate(pointwise(self.coarse, levels[2]), scale_factor=2.0, mode="nearest")
        describing = pointwise(self.middle, levels[1]) + above
        describing = self.blend(F.relu(describing))
        named = (None, None) if self.namer is None else self.namer(pixels)
        return Dense(scores.float(), decode(offsets.float(), cells), describing.float(), pyramid[0].float(), *named)


def build_namer(shape: LiteShape) -> Namer | None:
    """The namer a shape asks for, untaught."""
    if shape.namer not in NAMERS:
        raise DeixisError(f"unknown namer {shape.namer!r}; known: {', '.join(NAMERS[1:])}")
    if not shape.namer:
        return None
    return Namer(shape.namer_stride, shape.feature, shape.namer_hidden, shape.learned)
