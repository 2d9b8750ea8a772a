"""A file is there whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deixis.atomic import require_new_folder, whole_file, whole_folder, write_bytes, write_json, write_text
from deixis.errors import DeixisError


def _fail_half_way(file: Path) -> None:
    with whole_file(file) as partial:
        partial.write_text("half")
        raise RuntimeError


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    write_text(file, "old")
    with pytest.raises(RuntimeError):
        _fail_half_way(file)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_the_file_appears_only_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    with whole_file(file) as partial:
        partial.write_text("new")
        assert not file.exists()
    assert file.read_text() == "new"


def test_text_json_and_bytes_come_back(tmp_path: Path) -> None:
    write_text(tmp_path / "t", "caf\u00e9 \ud800!")
    assert (tmp_path / "t").read_text(encoding="utf-8") == "caf\u00e9 ?!"
    write_json(tmp_path / "j", {"w\u00f6rd": [1, 2.5]})
    assert json.loads((tmp_path / "j").read_text(encoding="utf-8")) == {"w\u00f6rd": [1, 2.5]}
    write_bytes(tmp_path / "b", b"\x00\xff")
    assert (tmp_path / "b").read_bytes() == b"\x00\xff"


def test_json_that_is_no_json_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "j", float("nan"))
    assert not list(tmp_path.iterdir())


def _fail_in_folder(folder: Path) -> None:
    with whole_folder(folder) as work:
        (work / "half").touch()
        raise RuntimeError


def test_a_folder_appears_when_it_is_complete_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    with pytest.raises(RuntimeError):
        _fail_in_folder(folder)
    assert list(tmp_path.iterdir()) == []
    with whole_folder(folder) as work:
        (work / "all").touch()
        assert not folder.exists()
    assert [path.name for path in folder.iterdir()] == ["all"]
    with pytest.raises(DeixisError, match="set exists already: give the clips a folder"):
        require_new_folder(folder, "the clips")
