"""The lock: right hashes from a page of the registry, and up to date with the constraints."""

from __future__ import annotations

from pathlib import Path

import pytest

from supply.lock import LEFT_OUT, hashes, make_lock, pins, wanted_pins

ROOT = Path(__file__).parents[2]
PAGE = """<html><body>
<a href="https://files/x/thing-1.0-py3-none-any.whl#sha256=aa">thing-1.0-py3-none-any.whl</a><br/>
<a href="https://files/x/thing-1.0.tar.gz#sha256=bb" data-requires-python="&gt;=3.10">thing-1.0.tar.gz</a><br/>
<a href="https://files/x/thing-1.0.1-py3-none-any.whl#sha256=cc">thing-1.0.1-py3-none-any.whl</a><br/>
<a href="https://files/x/thing-1.0+cpu-py3-none-any.whl#sha256=dd">thing-1.0+cpu-py3-none-any.whl</a><br/>
<a href="https://files/x/old-style.egg#sha256=ee">old-style.egg</a>
</body></html>"""


def test_only_the_files_of_the_release_count() -> None:
    assert hashes(PAGE, "1.0") == ["aa", "bb"]
    assert hashes(PAGE, "1.0.0") == ["aa", "bb"]
    assert hashes(PAGE, "1.0.1") == ["cc"]
    assert hashes(PAGE, "2.0") == []


def test_a_lock_lists_every_hash_and_leaves_torch_to_the_machine() -> None:
    lock = make_lock({"thing": "1.0", "torch": "2.13.0"}, {"thing": PAGE}.__getitem__)
    assert "thing==1.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n" in lock
    assert pins(lock) == {"thing": "1.0"}
    with pytest.raises(SystemExit, match=r"no file of thing 3\.0: mend constraints\.txt"):
        make_lock({"thing": "3.0"}, {"thing": PAGE}.__getitem__)


def test_the_lock_of_the_repository_is_that_of_its_constraints() -> None:
    wanted = {name: version for name, version in wanted_pins(ROOT).items() if name not in LEFT_OUT}
    assert len(wanted) > 100
    text = (ROOT / "requirements.lock").read_text()
    assert pins(text) == wanted, "constraints.txt has changed: run `make lock`"
    entries = text.split("\n    --hash=sha256:")
    assert all(len(entry.split()[0]) == 64 for entry in entries[1:])
    assert len(entries) > len(wanted)
