"""Single networks: every trunk is traced for photos of any shape, and halved weights are the same numbers."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from deixis.portable.export import FEW, Traced, noise, onnx_bytes
from deixis.portable.parts import SEEN, Look
from deixis.portable.smaller import in_half
from deixis.regions.lite import LiteExtractor
from deixis.regions.network.detector import LiteNetwork, LiteShape
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
