from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fuzz.attacks import npy_that_claims, npz_of_zeros, zip_of
from deixis.errors import BadFileError
from deixis.reading.arrays import Array, load_npy, load_npz, map_npy


@pytest.mark.parametrize(
    "array",
    [np.arange(12.0).reshape(3, 4), np.asfortranarray(np.arange(6).reshape(2, 3)), np.zeros((0, 4)), np.array(5),
     np.array(["a", "bc"]), np.arange(4, dtype=">i2"), np.array([True, False])],
)  # fmt: skip
def test_arrays_come_back(array: Array, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", one=array)
    np.savez_compressed(tmp_path / "b.npz", one=array)
    for found in (
        load_npy(tmp_path / "a.npy"),
        map_npy(tmp_path / "a.npy"),
        load_npz(tmp_path / "a.npz")["one"],
        load_npz(tmp_path / "b.npz")["one"],
    ):
        np.testing.assert_array_equal(found, array)
        assert found.dtype == array.dtype


def test_pickles_are_left_out_and_never_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", good=np.ones(2), info=np.array([{"a": 1}], dtype=object))
    assert set(load_npz(tmp_path / "a.npz")) == {"good"}
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(BadFileError, match="never unpickled"):
        load_npy(tmp_path / "a.npy")
    with pytest.raises(BadFileError, match="never unpickled"):
        map_npy(tmp_path / "a.npy")


def test_a_bomb_is_refused_from_its_directory(tmp_path: Path) -> None:
    (tmp_path / "bomb.npz").write_bytes(npz_of_zeros(20 * 2**20))
    began = time.process_time()
    with pytest.raises(BadFileError, match="are unpacked"):
        load_npz(tmp_path / "bomb.npz")
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("shape", [(10**12,), (10**6, 10**6, 10**6), (2**63, 4), (-1, 4), (17,)])
def test_what_a_header_claims_must_follow(shape: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy_that_claims(shape))
    (tmp_path / "a.npz").write_bytes(zip_of("a.npy", npy_that_claims(shape)))
    for read in (load_npy, map_npy):
        with pytest.raises(BadFileError, match=r"a\.npy is not a readable npy file"):
            read(tmp_path / "a.npy")
    with pytest.raises(BadFileError, match=r"a\.npz is not a readable npz file"):
        load_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("header", [b"{'descr': '<f2', \0", b"{'descr': '<f2'", b"[" * 3000, b"(3, 2), }  }", b""])
def test_headers_that_are_no_python_are_refused(header: bytes, tmp_path: Path) -> None:
    """numpy gives them to Python's tokenizer, which has errors of its own."""
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header)
    for read in (load_npy, map_npy):
        with pytest.raises(BadFileError, match=r"a\.npy is not a readable npy file"):
            read(tmp_path / "a.npy")


def test_every_byte_may_be_damaged(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.savez_compressed(file, boxes=np.random.default_rng(0).random((5, 4)), size=np.array([640, 480]))
    good = file.getvalue()
    refused = 0
    for at in range(0, len(good), 3):
        (tmp_path / "a.npz").write_bytes(good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        try:
            load_npz(tmp_path / "a.npz")
        except BadFileError:
            refused += 1
    assert refused > 50


def test_a_directory_of_many_members_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for at in range(1500):
            archive.writestr(f"{at}.npy", b"")
    with pytest.raises(BadFileError, match="1500 arrays"):
        load_npz(tmp_path / "a.npz")
