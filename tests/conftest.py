"""Fixtures for every test: the shared real data, an own cache folder, and few threads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine must not fail a property by its clock; in CI the same examples run every time.
settings.register_profile(
    "deixis", deadline=None, derandomize=bool(os.environ.get("CI")), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("deixis")
os.environ.setdefault("OMP_NUM_THREADS", "1")


def _find_shared() -> Path | None:
    chosen = os.environ.get("DEIXIS_SHARED")
    for folder in [Path(chosen)] if chosen else [Path(__file__).resolve().parents[2] / "shared"]:
        if (folder / "data").is_dir():
            return folder
    return None


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real data beside the repository; CI must have it."""
    folder = _find_shared()
    if folder is None:
        if os.environ.get("CI"):
            pytest.fail("CI needs the shared folder beside the repository (or DEIXIS_SHARED)")
        pytest.skip("needs the shared real data: put it beside the repository or set DEIXIS_SHARED")
    return folder


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEIXIS_HOME", str(tmp_path / "deixis-home"))
