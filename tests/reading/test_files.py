from __future__ import annotations

import gzip
import os
import time
from pathlib import Path

import pytest

from benchmarks.fuzz.attacks import gzip_of_one_line
from deixis.errors import BadFileError
from deixis.reading.files import open_file, read_bytes, read_lines, read_text, unpacked_limit


def test_text_comes_back_plain_and_packed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffein Hund läuft\n\n zwei \n".encode())
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress((tmp_path / "a.txt").read_bytes()))
    for name in ("a.txt", "a.txt.gz"):
        assert read_text(tmp_path / name) == "ein Hund läuft\n\n zwei \n"
        assert read_lines(tmp_path / name) == ["ein Hund läuft", "zwei"]


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    cases = {"pipe": "device or a pipe", "none": "there is no file", ".": "is a folder", "a\0b": "cannot be opened"}
    for name, says in cases.items():
        with pytest.raises(BadFileError, match=says):
            open_file(tmp_path / name)
    with pytest.raises(BadFileError, match="device or a pipe"):
        read_bytes(Path("/dev/zero"))


def test_limits_are_stated(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 11)
    assert len(read_bytes(tmp_path / "a", limit=11)) == 11
    with pytest.raises(BadFileError, match="more than 10 bytes"):
        read_bytes(tmp_path / "a", limit=10)


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb = gzip_of_one_line(100)
    assert 2 * unpacked_limit(len(bomb)) < 100 * 2**20  # else it is none
    (tmp_path / "captions.tsv.gz").write_bytes(bomb)
    began = time.process_time()
    with pytest.raises(BadFileError, match="unpacks to more than"):
        read_text(tmp_path / "captions.tsv.gz")
    assert time.process_time() - began < 2


@pytest.mark.parametrize("cut", [5, 20, -4])
def test_damaged_gzip_is_named(cut: int, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(os.urandom(2000))[:cut])
    with pytest.raises(BadFileError, match=r"a\.gz cannot be read"):
        read_bytes(tmp_path / "a.gz")


def test_bytes_that_are_no_text_are_placed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo\n\xff\n")
    with pytest.raises(BadFileError, match="line 3: not UTF-8"):
        read_text(tmp_path / "a")
