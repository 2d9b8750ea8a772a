from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from deixis.errors import BadFileError
from deixis.reading.tensors import check_sizes, load_tensors, tensor_shapes


def test_shapes_come_from_the_header(tmp_path: Path) -> None:
    tensors = {"a": torch.zeros(3, 4), "b": torch.zeros(())}
    save_file(tensors, tmp_path / "a.safetensors")
    assert tensor_shapes(tmp_path / "a.safetensors") == {"a": (3, 4), "b": ()}
    assert set(load_tensors(tmp_path / "a.safetensors")) == {"a", "b"}


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"a": torch.zeros(30, 40)}, path)
    data = path.read_bytes()
    for broken in (data[:20], b"\xff" * 100, data[:-7], b"\x80\x04\x95pickle"):
        path.write_bytes(broken)
        for read in (tensor_shapes, load_tensors):
            with pytest.raises(BadFileError, match=r"a\.safetensors is damaged"):
                read(path)
    with pytest.raises(BadFileError, match="there is no file"):
        tensor_shapes(tmp_path / "none")


def test_sizes_are_those_of_the_weights() -> None:
    shapes = {"words.weight": (9000, 512), "out.bias": (9000,)}
    check_sizes(
        {"width": 512, "words": 9000, "start": 10**9, "encoder": {"layers": 2, "location_width": 300}}, shapes, "m"
    )
    check_sizes({"region_words": 2000}, shapes={"small": (64, 64)}, place="m")  # names of regions it does not read
    cases = {
        "width": 40_000,
        "classes": 10**4,
        "hidden": -1,
        "features": 10**9,
        "layers": 10**6,
        "self_attention_heads": 1000,
    }
    for name, value in cases.items():
        with pytest.raises(BadFileError, match=rf"m\.a\[0\]\.{name} is {value}"):
            check_sizes({"a": [{name: value}]}, shapes, "m")
