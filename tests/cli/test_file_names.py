"""Photos whose names are no text (bytes in no known encoding, as on old disks) are photos like others."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from deixis.cli.main import main
from deixis.regions.store.reader import RegionStore

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"
NAME = "caf\udce9.jpg"
"""How Python calls the file whose name is ``caf\\xe9.jpg``, in Latin-1."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two photos and a damaged one, of which only the names of two are no text."""
    folder = tmp_path / "photos"
    folder.mkdir()
    shutil.copyfile(PHOTOS / "coffee.jpg", os.fsencode(folder) + b"/caf\xe9.jpg")
    shutil.copyfile(PHOTOS / "chelsea.jpg", folder / "cat.jpg")
    (folder / "bad\udce9.jpg").write_bytes((PHOTOS / "coffee.jpg").read_bytes()[:500])
    assert sorted(os.listdir(os.fsencode(folder))) == [b"bad\xe9.jpg", b"caf\xe9.jpg", b"cat.jpg"]
    return folder


def run(*arguments: str) -> int:
    """Run a command; a traceback would end the test."""
    try:
        main(list(arguments))
    except SystemExit as left:
        return int(left.code or 0)
    return 0


FAILED = 2
"""What commands leave with where a photo was damaged, after the others have been done."""


def test_a_store_knows_them_and_names_the_damaged_one(photos: Path, tmp_path: Path) -> None:
    assert run("regions", "extract", str(photos), "-o", str(tmp_path / "store"), "--processes", "0") == 0
    store = RegionStore.open(tmp_path / "store")
    assert sorted(store.ids) == ["caf\udce9", "cat"]
    assert len(store.get("caf\udce9").boxes) > 1
    assert [failed["id"] for failed in store.header.failed] == ["bad\udce9"]
    store.verify()


def test_captions_and_labels_have_them_once_and_go_on(
    photos: Path, small_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ["--model", str(small_bundle)]
    out = tmp_path / "out.jsonl"
    assert run("caption", str(photos), "-o", str(out), *model) == FAILED
    first = out.read_bytes()
    lines = [json.loads(line) for line in first.decode("utf-8").splitlines()]  # the file itself is UTF-8
    assert sorted(Path(line["image"]).name for line in lines) == [NAME, "cat.jpg"]
    assert run("caption", str(photos), "-o", str(out), *model) == FAILED
    assert out.read_bytes() == first  # found again, not answered twice
    assert "bad\\udce9.jpg" in capsys.readouterr().err
    assert run("label", str(photos), "-o", str(tmp_path / "labels.json"), "--phrases", "a cat", *model) == FAILED
    labels = json.loads((tmp_path / "labels.json").read_text(encoding="utf-8"))
    assert sorted(Path(image["file_name"]).name for image in labels["images"]) == [NAME, "cat.jpg"]


def test_a_search_finds_them(
    photos: Path, small_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = ["search", str(photos), "a cup", "--index", str(tmp_path / "index"), "--model", str(small_bundle)]
    assert run(*search, "--json") == FAILED
    found = json.loads(capsys.readouterr().out)
    assert NAME in json.dumps(found, ensure_ascii=False)
    assert run(*search) == FAILED
    assert "caf\\udce9.jpg" in capsys.readouterr().out
