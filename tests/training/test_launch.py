"""Counting the processes that came, and starting them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from deixis.errors import DeixisError
from deixis.training.launch import _Group, is_launched, launch, naming_the_lost, require_processes


@pytest.mark.parametrize(
    ("asked", "came", "environment"),
    [
        (None, 1, {}),
        (1, 1, {}),
        (2, 2, {"WORLD_SIZE": "2"}),
        (None, 2, {"WORLD_SIZE": "2", "MASTER_PORT": "29500"}),
        (1, 1, {"MASTER_PORT": "29500"}),
        (None, 1, {"WORLD_SIZE": "1", "MASTER_PORT": "29500"}),
    ],
)
def test_as_many_as_asked_for_is_fine(asked: int | None, came: int, environment: dict[str, str]) -> None:
    require_processes(asked, came, environment)
    assert is_launched(environment) == ("WORLD_SIZE" in environment)


@pytest.mark.parametrize(
    ("asked", "came", "environment", "told"),
    [
        (2, 1, {}, "2 processes were asked for, but 1 came"),
        (None, 1, {"WORLD_SIZE": "4"}, "4 processes were asked for, but 1 came"),
        (2, 4, {"WORLD_SIZE": "4"}, "2 processes were asked for, but 4 came"),
        (None, 1, {"MASTER_PORT": "29500"}, "started this process alone"),
    ],
)
def test_fewer_or_more_are_refused(asked: int | None, came: int, environment: dict[str, str], told: str) -> None:
    with pytest.raises(DeixisError, match=told):
        require_processes(asked, came, environment)


def test_a_command_that_fails_in_every_process_gives_its_exit_code(capfd: pytest.CaptureFixture[str]) -> None:
    assert launch(["train", "no/such/recipe"], 2) == 2
    errors = capfd.readouterr().err
    assert errors.count("deixis: ") == 1  # not once for each process
    assert "no/such/recipe" in errors


def test_a_lost_process_is_named() -> None:
    with pytest.raises(DeixisError, match="another process of this run has ended"), naming_the_lost():
        raise RuntimeError("[pair.cc:544] Connection closed by peer [127.0.0.1]:22861")
    with pytest.raises(RuntimeError, match="out of cheese"), naming_the_lost():
        raise RuntimeError("out of cheese")


def test_the_cause_is_told_and_not_what_follows_from_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = "import os, sys; mine = os.environ['RANK']; print('told by', mine, file=sys.stderr); sys.exit({}[mine])"
    for codes, rank, told in [
        ({"0": 3, "1": 2}, 1, "told by 0\ntold by 1\n"),  # the first lost the second, which knows why
        ({"0": 2, "1": 2}, 0, "told by 0\n"),
        ({"0": 1, "1": 2}, 0, "told by 0\n"),
        ({"0": 3, "1": 0}, 0, "told by 0\n"),
    ]:
        with _Group(str(tmp_path)) as group:
            group.start([sys.executable, "-c", said.format(codes)], 2)
            for member in group.members:
                member.wait()
            assert group.wait() == rank
            assert group.explain(rank) == (1 if codes["0"] == 1 else 2)
        assert capfd.readouterr().err == told
