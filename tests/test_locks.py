"""One writer at a time, and the second is told who the first is."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deixis.errors import DeixisError
from deixis.locks import Lock, lock_file, only_writer

HOLD = "import sys, time; from deixis.locks import Lock; Lock(sys.argv[1]); print('held', flush=True); time.sleep(60)"


def hold(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_writer_is_told_who_has_it_and_a_kill_lets_go(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    first = hold(file)
    try:
        with pytest.raises(DeixisError) as told:
            Lock(file)
        message = str(told.value)
        assert message.startswith(f"{file} is being written by process {first.pid} on {socket.gethostname()} since 20")
        assert "UTC (-c" in message
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait(10)
    assert lock_file(file).is_file()  # a kill leaves the file, but not the lock
    with only_writer(file):
        assert json.loads(lock_file(file).read_text())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_has_its_lock_inside_and_files_their_own(tmp_path: Path) -> None:
    with only_writer(tmp_path), only_writer(tmp_path / "a"), only_writer(tmp_path / "b"):
        assert sorted(item.name for item in tmp_path.iterdir()) == [".a.lock", ".b.lock", ".lock"]
        with pytest.raises(DeixisError, match="the run is being written"):
            Lock(tmp_path, shown="the run")
    assert list(tmp_path.iterdir()) == []


def test_of_many_that_start_at_once_one_wins(tmp_path: Path) -> None:
    file = tmp_path / "out"

    def attempt(_: int) -> str:
        try:
            Lock(file)  # held until the process ends
        except DeixisError as error:
            return str(error)
        return "mine"

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(attempt, range(32)))
    assert answers.count("mine") == 1
    assert all("is being written by" in answer for answer in answers if answer != "mine")


def test_letting_go_while_others_wait_never_makes_two_winners(tmp_path: Path) -> None:
    """The lock's file is removed and made again all the time: nobody may hold a lock on a file that is gone."""
    file, inside, most, rounds = tmp_path / "out", 0, 0, 0

    def many(_: int) -> None:
        nonlocal inside, most, rounds
        for _attempt in range(200):
            try:
                with only_writer(file):
                    inside += 1
                    most, rounds = max(most, inside), rounds + 1
                    inside -= 1
            except DeixisError:
                continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(many, range(4)))
    assert rounds > 10
    assert most == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_left_to_the_first_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    Lock(tmp_path).release()
