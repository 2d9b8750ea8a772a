"""The installed package, away from the repository: what `pip install` gives must train and answer by itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.recipe
ROOT = Path(__file__).parents[1]
LARGEST = 100_000_000  # bytes, what PyPI takes without asking


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, so that the repository stays as it is."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    out = tmp_path_factory.mktemp("wheel")
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(out), str(copy)]
    done = subprocess.run([sys.executable, "-m", "pip", *build], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("deixis-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel alone; what it depends on is borrowed from the one that runs the tests."""
    place = tmp_path_factory.mktemp("environment") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    install = ["--python", str(place), "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    done = subprocess.run([sys.executable, "-m", "pip", *install], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (packages,) = place.glob("lib/python*/site-packages")
    borrowed = [path for path in sys.path if Path(path).name == "site-packages"]
    (packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    return place


def run(place: Path, folder: Path, program: str, *arguments: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(place / "bin" / program), *arguments],
        cwd=folder,
        env={**kept, "OMP_NUM_THREADS": "1", "DEIXIS_HOME": str(folder / "home"), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_is_small_and_whole(wheel: Path) -> None:
    assert wheel.stat().st_size < LARGEST
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    ours = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / "deixis").rglob("*") if path.is_file()}
    left_out = {name for name in ours - names if "__pycache__" not in name}
    assert not left_out, "files of the package that the wheel lacks"
    assert "Author: The Deixis authors" in metadata
    assert "Classifier: Typing :: Typed" in metadata


def test_recipes_captions_and_training_work_from_the_wheel_alone(installed: Path, tmp_path: Path) -> None:
    where = run(installed, tmp_path, "python", "-c", "import deixis; print(deixis.__file__)").strip()
    assert Path(where).is_relative_to(installed), "this must be the installed package, not the repository's"

    assert "captioning/baseline" in run(installed, tmp_path, "deixis", "recipes")

    shutil.copy(ROOT / "examples" / "photos" / "coffee.jpg", tmp_path)
    answer = json.loads(run(installed, tmp_path, "deixis", "caption", "coffee.jpg", "--json"))
    assert answer["text"]
    assert any(word["boxes"] for word in answer["words"])

    run(installed, tmp_path, "deixis", "data", "scenes", "scenes", "--train", "6", "--val", "2", "--test", "2")
    small = ["size=cpu", "data.dataset=scenes", "data.store=auto", "data.min_count=1", "data.parse=false"]
    small += ["model.width=32", "stages.words.epochs=1", "stages.words.batch=2", "validation.samples=0", "log_every=1"]
    run(installed, tmp_path, "deixis", "train", "captioning/baseline", *small, "-o", "run", "--no-tensorboard")
    logged = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert sum("loss" in entry for entry in logged) == 3
    assert any("validation" in entry for entry in logged)
