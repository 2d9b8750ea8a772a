"""The build of torch that CI installs: by its full version and its hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from supply.lock import pins, wanted_pins
from supply.torch_lock import FILE, make_torch_lock

ROOT = Path(__file__).parents[2]


def test_the_wheels_of_folders_and_of_the_lock_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"torch-{version}-cp311-cp311-linux_x86_64.whl" for version in ("2.0.0+cpu", "2.0.0", "1.9.0+cpu")]
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    lock = make_torch_lock("2.0.0", f"torch==2.0.0+cpu \\\n    --hash=sha256:{'b' * 64}\n")
    assert pins(lock) == {"torch": "2.0.0+cpu"}
    own = hashlib.sha256(names[0].encode()).hexdigest()
    assert sorted(lock.split("--hash=sha256:")[1:]) == sorted([f"{own} \\\n    ", f"{'b' * 64}\n"])
    assert "b" * 64 not in make_torch_lock("2.0.0", f"torch==1.9.0+cpu \\\n    --hash=sha256:{'b' * 64}\n")
    monkeypatch.delenv("PIP_FIND_LINKS")
    with pytest.raises(SystemExit, match=r"no wheel of torch 2\.0\.0\+cpu"):
        make_torch_lock("2.0.0")


def test_ci_installs_nothing_whose_hash_is_not_known() -> None:
    text = (ROOT / FILE).read_text()
    assert pins(text) == {"torch": f"{wanted_pins(ROOT)['torch']}+cpu"}, "constraints.txt has changed: run `make lock`"
    assert text.count("--hash=sha256:") >= 1
    assert "export CI=true" in (ROOT / ".ci" / "run").read_text()
    rules = (ROOT / "Makefile").read_text()
    assert f"ifeq ($(CI),true)\nTORCH := --no-deps --require-hashes -r {FILE}\n" in rules
    installs = [line for line in rules.splitlines() if "pip install" in line]
    assert len(installs) == 3
    first, torch, own = installs
    assert "--no-deps --require-hashes -r requirements.lock" in first
    assert torch.endswith("$(TORCH)")
    assert "--no-deps --no-build-isolation -e ." in own  # ourselves: nothing is downloaded
