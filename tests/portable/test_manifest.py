"""Exported folders that are damaged, mixed up or no such folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from deixis.answering.load import Deixis
from deixis.cli.main import main
from deixis.errors import BadFileError, DeixisError
from deixis.portable.__main__ import main as run
from deixis.portable.export import export_model
from deixis.portable.manifest import FILE, PARTS, Manifest
from deixis.portable.runner import Portable
from tests.portable.conftest import PHOTOS


@pytest.fixture
def folder(exported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "copy"))


@pytest.mark.parametrize("name", ["look.onnx", "step.onnx", "grounder-vocabulary.json"])
def test_a_file_cut_short_is_one_line(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) // 2])
    assert run([str(folder), str(PHOTOS[0])]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{name} is cut short: {len(data) // 2:,} of {len(data):,} bytes" in said


def test_a_file_of_another_model_is_refused(folder: Path) -> None:
    look = bytearray((folder / "look.onnx").read_bytes())
    look[len(look) // 2] ^= 1
    (folder / "look.onnx").write_bytes(look)
    with pytest.raises(BadFileError, match="belongs to another model"):
        Portable.load(folder)


def test_what_onnxruntime_refuses_is_said(folder: Path) -> None:
    (folder / "match.onnx").write_bytes(b"no network")
    data = json.loads((folder / FILE).read_text())
    from deixis.portable.manifest import file_facts

    facts = file_facts(b"no network")
    data["files"]["match.onnx"] = {"bytes": facts.bytes, "sha256": facts.sha256}
    (folder / FILE).write_text(json.dumps(data))
    with pytest.raises(BadFileError, match=r"match\.onnx cannot be read by onnxruntime"):
        Portable.load(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"deixis_onnx": 99}, "deixis_onnx is 99"),
        ({"files": {}}, "it lacks"),
        ({"beam": 0}, "a beam or steps"),
        ({"calibration": {"right": 3}}, "describes no exported model"),
        ({"presence": {"what": 1}}, "describes no exported model"),
    ],
)
def test_a_wrong_manifest_is_refused(folder: Path, change: dict[str, object], said: str) -> None:
    data = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps(data | change))
    with pytest.raises(BadFileError, match=said):
        Manifest.load(folder)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="holds no exported model"):
        Portable.load(tmp_path)


def test_the_manifest_reads_back(exported: Path) -> None:
    manifest = Manifest.load(exported)
    assert manifest.name == "lite"
    assert {f"{part}.onnx" for part in PARTS} <= set(manifest.files)
    assert json.loads(json.dumps(manifest.to_json())) == json.loads((exported / FILE).read_text())


def test_the_command_refuses_a_folder_that_exists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["export-model", "lite", "-o", str(tmp_path), "--format", "onnx"])
    assert left.value.code == 2
    assert "exists already" in capsys.readouterr().err


def test_a_beam_below_one_is_refused(lite: Deixis, tmp_path: Path) -> None:
    with pytest.raises(DeixisError, match="beam should be at least 1"):
        export_model(lite, tmp_path / "new", beam=0)
    assert not (tmp_path / "new").exists()


def test_a_model_without_a_grounder_is_refused(lite: Deixis, tmp_path: Path) -> None:
    alone = Deixis(lite.extractor, lite.captioner, name="alone")
    with pytest.raises(DeixisError, match="alone has no grounder that can be exported"):
        export_model(alone, tmp_path / "new")
