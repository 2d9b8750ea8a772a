"""The fuzzer itself: it repeats what it does, it sees what goes wrong, and it finds nothing in us."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

import pytest

from benchmarks.fuzz import __main__ as fuzzer
from benchmarks.fuzz.harness import Outcome, Target, fuzz
from benchmarks.fuzz.mutate import damaged
from benchmarks.fuzz.targets import TARGETS
from deixis.errors import BadFileError


def make(root: Path) -> None:
    (root / "a.json").write_text('{"a": [1, 2, {"b": "c"}]}')


def outcomes(target: Target, count: int = 3) -> list[Outcome]:
    return list(fuzz(target, count, seed=0))


def whole(root: Path) -> bool:
    return (root / "a.json").read_text() == '{"a": [1, 2, {"b": "c"}]}'


def test_damage_repeats_and_differs() -> None:
    data = b'{"a": [1, 2, {"b": "c"}]}'
    made = [damaged(data, random.Random(seed), name="a.json") for seed in range(200)]
    assert made == [damaged(data, random.Random(seed), name="a.json") for seed in range(200)]
    assert len(set(made)) > 100
    assert sum(one != data for one in made) > 190


def test_refusals_are_fine_and_tracebacks_are_not() -> None:
    def refuse(root: Path) -> None:
        if not whole(root):
            raise BadFileError("no")

    def crash(root: Path) -> None:
        if not whole(root):
            raise KeyError("crashed here")

    assert [outcome.kind for outcome in outcomes(Target("a", make, refuse))] == ["refused"] * 3
    found = outcomes(Target("a", make, crash))
    assert all(outcome.wrong and "crashed here" in outcome.detail for outcome in found)


def test_time_and_memory_are_seen() -> None:
    def slow(root: Path) -> None:
        began = time.process_time()
        while not whole(root) and time.process_time() - began < 2.2:
            pass

    def large(root: Path) -> None:
        if not whole(root):
            bytearray(600 * 2**20)[::4096] = b"x" * (600 * 2**20 // 4096)

    (found,) = outcomes(Target("a", make, slow), 1)
    assert found.seconds > 2
    assert found.wrong
    (found,) = outcomes(Target("a", make, large), 1)
    assert found.bytes > 550 * 2**20
    assert found.wrong


def test_a_process_that_dies_is_replaced_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(root: Path) -> None:
        import os

        if not whole(root):
            os._exit(1)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert [outcome.kind for outcome in outcomes(Target("a", make, die))] == ["hang"] * 3
    assert not list(tmp_path.iterdir())


def test_a_target_that_refuses_good_files_proves_nothing() -> None:
    def refuse(root: Path) -> None:
        raise BadFileError("no")

    assert all(outcome.wrong for outcome in outcomes(Target("a", make, refuse)))


def test_every_kind_of_file_has_its_share() -> None:
    shares = fuzzer.shares(TARGETS, 2000)
    assert len(shares) == len(TARGETS) >= 20
    assert 1950 <= sum(shares.values()) <= 2050


@pytest.mark.recipe
def test_two_thousand_inputs_find_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzzer.main(["--inputs", "2000", "--seed", "0"]) == 0, capsys.readouterr().err
