"""What goes to the hub is exactly the bundle and a card; what comes back answers as before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

import deixis
from deixis.errors import BadFileError, DeixisError
from deixis.models import hub
from deixis.models.bundle import find_bundle, write_bundle

PHOTO = Path(__file__).parents[2] / "examples" / "photos" / "coffee.jpg"
MODEL = {"config.json", "model.safetensors", "vocabulary.json"}


class Recorder:
    """Stands where the hub's client does and keeps what is uploaded."""

    def __init__(self, place: Path) -> None:
        self.place, self.made = place, ""

    def create_repo(self, name: str, **options: Any) -> None:
        assert options == {"private": True, "exist_ok": True}
        self.made = name

    def upload_folder(self, *, repo_id: str, folder_path: Path, commit_message: str) -> str:
        assert repo_id == self.made
        assert commit_message
        shutil.copytree(folder_path, self.place)
        return f"https://hub.test/{repo_id}"


def test_up_and_down_again(small_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Recorder(tmp_path / "hub")
    address = deixis.push_to_hub(small_bundle, "me/small", private=True, api=there)  # type: ignore[arg-type]
    assert address == "https://hub.test/me/small"
    files = {path.relative_to(there.place).as_posix() for path in there.place.rglob("*") if path.is_file()}
    models = {f"{role}/{name}" for role in ("captioner", "grounder") for name in MODEL}
    assert files == models | {"bundle.json", "README.md"}
    card = (there.place / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: deixis\n")
    assert "deixis.load('me/small')" in card
    assert "| cider (validation) | 1.250 |" in card

    fetched: list[str] = []

    def snapshot(name: str, allow_patterns: list[str]) -> str:
        from fnmatch import fnmatch

        fetched.append(name)
        assert all(any(fnmatch(file, pattern) for pattern in allow_patterns) for file in models)
        assert not any(fnmatch("evil.py", pattern) or fnmatch("x/evil.pkl", pattern) for pattern in allow_patterns)
        return str(there.place)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    monkeypatch.chdir(tmp_path)
    back, before = deixis.load("me/small"), deixis.load(small_bundle)
    assert fetched == ["me/small"]
    assert back.name == "me/small"
    assert back.caption(PHOTO).text == before.caption(PHOTO).text


def test_half_precision_halves_the_weights_and_keeps_the_checksums_true(small_bundle: Path, tmp_path: Path) -> None:
    bundle = find_bundle(small_bundle)
    write_bundle(tmp_path / "half", bundle)
    write_bundle(tmp_path / "full", bundle, half=False)
    for role in ("captioner", "grounder"):
        half, full = tmp_path / "half" / role, tmp_path / "full" / role
        assert (full / "model.safetensors").read_bytes() == (small_bundle / role / "model.safetensors").read_bytes()
        weights = load_file(half / "model.safetensors")
        assert not any(value.dtype.is_floating_point and value.element_size() > 2 for value in weights.values())
        assert (
            json.loads((half / "config.json").read_text())["files"]
            != json.loads((full / "config.json").read_text())["files"]
        )
    assert deixis.load(tmp_path / "half").caption(PHOTO).text == deixis.load(tmp_path / "full").caption(PHOTO).text
    with pytest.raises(DeixisError, match="exists already"):
        write_bundle(tmp_path / "half", bundle)


def test_training_state_is_never_uploaded(small_bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(small_bundle / "captioner", tmp_path / "run")
    for extra in ("state.safetensors", "state.json", ".hidden"):
        (tmp_path / "run" / extra).write_text("private")
    (tmp_path / "run" / "calibration.json").write_text("{}")
    write_bundle(tmp_path / "out", find_bundle(tmp_path / "run"))
    found = {path.name for path in (tmp_path / "out" / "captioner").iterdir()}
    assert found == MODEL | {"calibration.json"}
    assert not (tmp_path / "out" / "grounder").exists()


def test_a_model_that_cannot_be_had_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError("no network here\nand more")

    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    with pytest.raises(BadFileError, match="'me/none' is no folder here and cannot be had from the hub: no network"):
        hub.download("me/none")
