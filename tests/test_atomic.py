"""A file is there whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deixis.atomic import (
    require_new_folder,
    temporary_name,
    whole_file,
    whole_folder,
    write_bytes,
    write_json,
    write_text,
)
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
    assert (tmp_path / "t").read_text(encoding="utf-8") == "caf\u00e9 \\ud800!"
    write_json(tmp_path / "j", {"w\u00f6rd": [1, 2.5, "caf\udce9"]})
    assert json.loads((tmp_path / "j").read_text(encoding="utf-8")) == {"w\u00f6rd": [1, 2.5, "caf\udce9"]}
    write_bytes(tmp_path / "b", b"\x00\xff")
    assert (tmp_path / "b").read_bytes() == b"\x00\xff"


def test_json_that_is_no_json_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "j", float("nan"))
    assert not list(tmp_path.iterdir())


def _dead_process() -> int:
    """The number of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_what_a_killed_process_left_goes_away_with_the_next_file(tmp_path: Path) -> None:
    name = temporary_name(tmp_path / "old.txt").name
    left = tmp_path / name.replace(str(os.getpid()), str(_dead_process()))
    left.write_text("half")
    folder = tmp_path / name.replace(str(os.getpid()), str(_dead_process())).replace("old", "folder")
    (folder / "inside").mkdir(parents=True)
    alive = tmp_path / name.replace(str(os.getpid()), str(os.getppid()))
    elsewhere = tmp_path / ".old.txt.1-01234567.partial"  # of another machine: only that one knows whether it is alive
    for file in (alive, elsewhere):
        file.write_text("being written")
    write_text(tmp_path / "new.txt", "new")
    assert {item.name for item in tmp_path.iterdir()} == {"new.txt", alive.name, elsewhere.name}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_file_and_the_way_out(number: int, tmp_path: Path) -> None:
    def no_room() -> None:
        with whole_file(tmp_path / "big.bin"):
            raise OSError(number, os.strerror(number))  # as write(2) gives it: without a name

    with pytest.raises(DeixisError, match=r"cannot write .*big\.bin: the disk is full; make room, then run the same"):
        no_room()
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


def test_a_folder_can_be_read_by_whom_the_user_lets_read_new_files(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "model") as place:
        (place / "weights").write_bytes(b"1")
        (place / "weights").chmod(0o600)  # as safetensors writes them
    (tmp_path / "plain").write_bytes(b"1")
    assert (tmp_path / "model" / "weights").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_what_cannot_be_written_is_told_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeixisError, match=r"cannot write .*notes\.txt: "):
        write_text(tmp_path / "file" / "notes.txt", "new")
    with pytest.raises(DeixisError, match=r"cannot write .*model: "), whole_folder(tmp_path / "file" / "model"):
        pass
