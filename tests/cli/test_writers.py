"""What commands write: one writer at a time, and a full disk is told with the file and the way out."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deixis.cli.main import main
from deixis.locks import only_writer

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"
COMMANDS = ("caption", "label", "extract", "search")


def arguments(command: str, bundle: Path, out: Path) -> list[str]:
    model = ["--model", str(bundle)]
    return {
        "caption": ["caption", str(PHOTOS), "-o", str(out), *model],
        "label": ["label", str(PHOTOS), "-o", str(out), "--format", "coco", *model],
        "extract": ["regions", "extract", str(PHOTOS), "-o", str(out), "--processes", "0"],
        "search": ["search", str(PHOTOS), "--index", str(out), *model],
    }[command]


def fails(given: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must leave with 2 and one line; return it."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main(given)
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return next(line for line in said.splitlines() if line.startswith("deixis: "))


def works(given: list[str]) -> None:
    code: object = 0
    try:
        main(given)
    except SystemExit as left:
        code = left.code
    assert code in (0, None)


@contextmanager
def little_room(size: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes: the kernel refuses the write as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def left_over(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.name.endswith((".partial", ".lock", ".tmp"))]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_second_writer_is_told_who_has_it(
    command: str,
    small_bundle: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEIXIS_HOME", str(tmp_path / "home"))
    out = tmp_path / "out"
    held = out
    if command in ("extract", "search"):
        out.mkdir()
    elif command == "label":
        held = tmp_path / ".out.drafts.jsonl"  # what it has drafted until it is done
    with only_writer(held):
        said = fails(arguments(command, small_bundle, out), capsys)
    assert f"{out} is being written by process {os.getpid()} on " in said
    works(arguments(command, small_bundle, out))
    assert out.exists()
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_told_with_the_file_and_the_way_out(
    command: str,
    small_bundle: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEIXIS_HOME", str(tmp_path / "home"))
    out = tmp_path / "place" / "out"
    out.parent.mkdir()
    with little_room(600 if command in ("caption", "label") else 20_000):
        said = fails(arguments(command, small_bundle, out), capsys)
    assert said.startswith(f"deixis: cannot write {out.parent}{os.sep}")
    assert "the disk is full; make room" in said
    assert left_over(tmp_path) == []
    works(arguments(command, small_bundle, out))  # with room again it goes on
    assert out.exists()
    assert left_over(tmp_path) == []
