"""Single networks: every trunk is traced for photos of any shape, and small weights are what they promise to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from deixis.portable.export import FEW, Traced, noise, onnx_bytes
from deixis.portable.parts import SEEN, Look
from deixis.portable.smaller import SMALLEST, in_half, in_int8, quantised
from deixis.regions.lite import LiteExtractor
from deixis.regions.network.detector import LiteNetwork, LiteShape
from deixis.regions.network.packing import PACKED, packed, unpacked
from deixis.regions.network.select import Ranking
from deixis.regions.store.as_stored import as_stored


@pytest.mark.parametrize(
    ("trunk", "namer"), [("efficientnet-lite0", ""), ("tinyvit-5m", ""), ("efficientnet-lite0", "dinov2-s")]
)
def test_a_trunk_looks_alike_at_every_shape(trunk: str, namer: str) -> None:
    torch.manual_seed(0)
    shape = LiteShape(pyramid=16, depth=1, describe=16, hidden=32, feature=24, words=5, trunk=trunk, namer=namer)
    network = LiteNetwork(shape)
    for score in network.proposals.scores:  # an untaught head finds all boxes alike, and rounding would choose
        torch.nn.init.normal_(score.weight, std=5.0)  # type: ignore[arg-type]
    extractor = LiteExtractor(network, ["word"] * 5, Ranking(), "untaught")
    with torch.no_grad():
        data = onnx_bytes(Traced(Look(extractor, 30), noise(256, 192), noise(320, 256), SEEN))
    session = onnxruntime.InferenceSession(data)
    rng = np.random.default_rng(1)
    for width, height in ((256, 192), (96, 480), (448, 288), (96, 96)):
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        size = np.array([2 * width, 3 * height], np.float32)
        found = dict(zip(SEEN, session.run(list(SEEN), {"pixels": pixels, "size": size}), strict=True))
        with torch.no_grad():
            image = torch.from_numpy(pixels).permute(2, 0, 1).unsqueeze(0)
            theirs = as_stored(extractor._extract(image, [(2 * width, 3 * height)], 30)[0])
        assert len(theirs) > FEW
        np.testing.assert_allclose(found["boxes"], theirs.boxes.numpy(), atol=0.01)
        np.testing.assert_allclose(found["features"], theirs.features.float().numpy(), atol=0.02)


def test_weights_that_are_halves_are_kept_as_halves() -> None:
    exact = np.linspace(-1, 1, 4096).astype(np.float16).astype(np.float32).reshape(64, 64)
    inexact = np.linspace(0, 1, 4096, dtype=np.float32).reshape(64, 64)
    assert not np.array_equal(inexact.astype(np.float16).astype(np.float32), inexact)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "exact"], ["y"]), helper.make_node("MatMul", ["y", "inexact"], ["z"])],
        "two",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 64])],
        [numpy_helper.from_array(exact, "exact"), numpy_helper.from_array(inexact, "inexact")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    before = model.SerializeToString()
    after = in_half(before)
    assert len(before) - len(after) == pytest.approx(2 * 4096, abs=200)
    x = {"x": np.ones((1, 64), np.float32)}
    answers = [onnxruntime.InferenceSession(data).run(None, x)[0] for data in (before, after)]
    np.testing.assert_array_equal(*answers)


def file_of(nodes: list[Any], **weights: np.ndarray) -> bytes:
    """An ONNX file that takes x (4, 64) and gives y, of 64 columns."""
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 64])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data


def test_large_constants_are_weights_too() -> None:
    table = np.linspace(-1, 1, 4096).astype(np.float16).astype(np.float32).reshape(64, 64)
    constant = helper.make_node("Constant", [], ["table"], value=numpy_helper.from_array(table))
    before = file_of([constant, helper.make_node("MatMul", ["x", "table"], ["y"])])
    after = in_half(before)
    assert len(before) - len(after) == pytest.approx(2 * 4096, abs=300)
    x = {"x": np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)}
    answers = [onnxruntime.InferenceSession(data).run(None, x)[0] for data in (before, after)]
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize("product", ["MatMul", "Gemm"])
def test_weights_that_were_kept_in_eight_bits_are_again(product: str) -> None:
    """The namer's matrices come as whole numbers times a scale: halves would change them, eight bits do not."""
    table = torch.from_numpy(np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32))
    name = f"{PACKED}0.weight"
    kept = unpacked(packed({name: table}))[name].numpy()  # (outputs, inputs)
    assert not np.array_equal(kept.astype(np.float16).astype(np.float32), kept), "the premise: no halves"
    extra: dict[str, Any] = {} if product == "MatMul" else {"transB": 1}
    weights = np.ascontiguousarray(kept.T) if product == "MatMul" else kept
    before = file_of([helper.make_node(product, ["x", "table"], ["y"], **extra)], table=weights)
    after = in_half(before)
    assert len(before) - len(after) > 2.5 * kept.size
    x = {"x": np.random.default_rng(1).normal(size=(4, 64)).astype(np.float32)}
    answers = [onnxruntime.InferenceSession(data).run(None, x)[0] for data in (before, after)]
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize("axis", [0, 1])
def test_eight_bits_are_off_by_half_a_step_of_their_row(axis: int) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 60)).astype(np.float32) * rng.uniform(1e-4, 10, size=(40, 1)).astype(np.float32)
    values[3], values[:, 5] = 0, 0
    whole, scales = quantised(values, axis)
    assert whole.dtype == np.int8
    assert whole.min() >= -127
    wide = np.expand_dims(scales, 1 - axis)
    assert np.abs(whole * wide - values).max() > 0, "the premise: these numbers do not fit eight bits"
    assert (np.abs(whole * wide - values) <= wide / 2 * (1 + 1e-5)).all()


@pytest.mark.parametrize("product", ["MatMul", "Gemm"])
def test_each_output_has_its_own_scale(product: str) -> None:
    """One output is a thousand times smaller than the others: a scale for all would make nothing of it."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(64, 64)).astype(np.float32)  # (inputs, outputs)
    table[:, 7] *= 1e-3
    kept = table if product == "MatMul" else np.ascontiguousarray(table.T)
    extra: dict[str, Any] = {} if product == "MatMul" else {"transB": 1}
    before = file_of([helper.make_node(product, ["x", "table"], ["y"], **extra)], table=kept)
    assert table.size >= SMALLEST
    after = in_int8(before)
    assert len(before) - len(after) > 2.5 * table.size
    x = rng.normal(size=(4, 64)).astype(np.float32)
    whole = onnxruntime.InferenceSession(after).run(None, {"x": x})[0]
    np.testing.assert_allclose(whole[:, 7], (x @ table)[:, 7], atol=0.02 * np.abs((x @ table)[:, 7]).max())
    np.testing.assert_allclose(whole, x @ table, atol=0.02 * np.abs(x @ table).max())
