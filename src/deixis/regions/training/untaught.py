"""An extractor whose namer has not been taught yet: the boxes of one, the tokens of DINOv2."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from deixis.regions.lite import LiteExtractor, save_lite
from deixis.regions.network.detector import LiteNetwork
from deixis.regions.network.trunks.published import dinov2

HEADS = ("regions.words.", "regions.classes.")
TAUGHT = (*HEADS, "namer.")
NOTHING = ("thing",)  # the words of one that knows none: what its finder had learnt makes no difference


def write_untaught(folder: Path, finder: LiteExtractor, weights: Path, stride: int) -> None:
    """Write an extractor that finds the regions of ``finder`` and describes each by its feature and a token.

    Args:
        folder: Where to.
        finder: Any extractor; its boxes and what its own maps say of them stay as they are, what it had learnt of words
            and classes goes.
        weights: Folder of the published weights of DINOv2 (:mod:`deixis.regions.network.trunks.published`).
        stride: Pixels of the input, along a side, for every patch.
    """
    shape = replace(finder.network.shape, namer="dinov2-s", namer_stride=stride, learned=0, words=len(NOTHING))
    network = LiteNetwork(shape)
    found = {name: value for name, value in finder.network.state_dict().items() if not name.startswith(TAUGHT)}
    tokens = {f"namer.network.{name}": value for name, value in dinov2(weights).state_dict().items()}
    names = {name: torch.zeros_like(value) for name, value in network.state_dict().items() if name.startswith(HEADS)}
    network.load_state_dict(found | tokens | names)
    save_lite(folder, network, NOTHING, finder.ranking, {"namer": "DINOv2 ViT-S/14 (Meta, Apache-2.0)"})
