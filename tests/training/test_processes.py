"""The real command in real processes: killed at random steps and resumed, on one process and on two."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from deixis.locks import only_writer
from deixis.models.checkpoint import load_weights
from deixis.training.run import Run
from deixis.training.state import RunState

pytestmark = pytest.mark.recipe

STEPS = 15  # five epochs of three batches


def command(processes: int, recipe: Path, run: Path, *overrides: str) -> list[str]:
    options = ["stages.0.epochs=5", "validation.every=2", "save_every=2", *overrides, "--processes", str(processes)]
    launch = [sys.executable, "-m", "deixis", "train", str(recipe), *options]
    return [*launch, "-o", str(run), "--resume", "--threads", "1"]


def came(run: Path) -> int:
    """How many processes really trained, as the run's last checkpoint says."""
    last = Run(run).pointer("last")
    assert last is not None
    state = RunState.load(last)
    ranks = {name.split(".")[1] for name in state.tensors if name.startswith("random.")}
    assert len(ranks) == state.processes  # every one of them has left its random generators
    return state.processes


def start(processes: int, recipe: Path, run: Path, *overrides: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DEIXIS_HOME": str(run.parent)}
    return subprocess.Popen(
        command(processes, recipe, run, "--no-tensorboard", *overrides),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[bytes]) -> bytes:
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()[-3000:]
    return errors


def done(run: Path) -> int:
    """Steps the run has logged."""
    return max((entry["step"] for entry in Run(run).entries() if "loss" in entry), default=0)


def curve(run: Path) -> list[float]:
    return [entry["loss"] for entry in Run(run).entries() if "loss" in entry]


def kill_after(process: subprocess.Popen[bytes], run: Path, step: int, number: int) -> None:
    """Send a signal to the run and all its processes as soon as it has logged ``step``."""
    until = time.monotonic() + 240
    while done(run) < step and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    if process.poll() is None:
        os.killpg(process.pid, number)
    process.communicate(timeout=120)


def members(process: subprocess.Popen[bytes]) -> list[int]:
    """The processes that a launcher has started."""
    return [child.pid for child in psutil.Process(process.pid).children()]


def wait_for_step(process: subprocess.Popen[bytes], run: Path, step: int) -> None:
    until = time.monotonic() + 240
    while done(run) < step:
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)


def kill_one_after(process: subprocess.Popen[bytes], run: Path, step: int) -> None:
    """Kill one of several processes: the others must end too, and the launcher must say why."""
    wait_for_step(process, run, step)
    both = members(process)
    assert len(both) == 2
    os.kill(both[1], signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"process 1 of 2 was ended by SIGKILL" in errors
    assert b"Traceback" not in errors, errors.decode()
    assert not any(psutil.pid_exists(pid) for pid in both)


def assert_same(a: Path, b: Path) -> None:
    for which in ("last", "best"):
        one, two = Run(a).pointer(which), Run(b).pointer(which)
        assert one is not None
        assert two is not None
        left, right = load_weights(one), load_weights(two)
        assert left.keys() == right.keys()
        assert all(torch.equal(left[name], right[name]) for name in left)
    assert curve(a) == curve(b)


@pytest.mark.parametrize("processes", [1, 2])
def test_killed_at_random_steps_and_resumed(processes: int, recipe_file: Path, tmp_path: Path) -> None:
    finish(start(processes, recipe_file, tmp_path / "whole"))
    assert len(curve(tmp_path / "whole")) == STEPS
    cut = tmp_path / "cut"
    first, second = sorted(random.Random(processes).sample(range(1, STEPS), 2))
    if processes == 1:
        kill_after(start(processes, recipe_file, cut), cut, first, signal.SIGKILL)
    else:
        kill_one_after(start(processes, recipe_file, cut), cut, first)
    kill_after(start(processes, recipe_file, cut), cut, second, signal.SIGKILL)
    finish(start(processes, recipe_file, cut))
    assert came(cut) == came(tmp_path / "whole") == processes
    assert_same(cut, tmp_path / "whole")


@pytest.mark.parametrize("processes", [1, 2])
def test_sigterm_saves_at_the_next_step(processes: int, recipe_file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    kill_after(start(processes, recipe_file, run, "save_every=1000"), run, 4, signal.SIGTERM)
    last = Run(run).pointer("last")
    assert last is not None
    saved = RunState.load(last).position
    assert saved.step == done(run) >= 4
    assert saved.step < STEPS
    finish(start(processes, recipe_file, run, "save_every=1000"))
    finish(start(processes, recipe_file, tmp_path / "whole", "save_every=1000"))
    assert came(run) == came(tmp_path / "whole") == processes
    assert_same(run, tmp_path / "whole")


@pytest.mark.parametrize("accumulate", [1, 2])
def test_two_processes_give_the_curve_of_one(accumulate: int, recipe_file: Path, tmp_path: Path) -> None:
    # without dropout, whose masks are drawn per process; batches of 7 and 6 split unevenly, captions differ in length
    same = [f"stages.0.accumulate={accumulate}", "data.limit=20", "stages.0.batch=7", "model.encoder.dropout=0.0"]
    same += ["model.decoder.word_dropout=0.0", "model.decoder.output_dropout=0.0"]
    finish(start(1, recipe_file, tmp_path / "one", *same))
    finish(start(2, recipe_file, tmp_path / "two", *same))
    assert (came(tmp_path / "one"), came(tmp_path / "two")) == (1, 2)
    one, two = curve(tmp_path / "one"), curve(tmp_path / "two")
    assert len(one) == STEPS
    assert two == pytest.approx(one, rel=1e-4)
    first, second = (
        [entry["validation"]["cider"] for entry in Run(tmp_path / name).entries() if "validation" in entry]
        for name in ("one", "two")
    )
    assert second == pytest.approx(first, abs=0.02)


def test_a_killed_launcher_takes_its_processes_along(recipe_file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(2, recipe_file, run, "stages.0.epochs=5000")
    wait_for_step(process, run, 2)
    both = [psutil.Process(pid) for pid in members(process)]
    process.kill()
    process.communicate(timeout=60)
    gone, alive = psutil.wait_procs(both, timeout=60)
    assert (len(gone), alive) == (2, [])
    assert came(run) == 2  # and they saved what they had


def test_the_second_writer_of_a_run_is_told_who_has_it(recipe_file: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with only_writer(tmp_path / "run"):
        second = start(1, recipe_file, tmp_path / "run")
        _, errors = second.communicate(timeout=300)
    assert second.returncode == 2
    assert f"{tmp_path / 'run'} is being written by process {os.getpid()} on ".encode() in errors
    assert not (tmp_path / "run" / "recipe.yaml").exists()


def test_accelerate_that_starts_one_of_two_is_refused(recipe_file: Path, tmp_path: Path) -> None:
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2"]
    launcher += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "-m"]
    refused = subprocess.run(
        [*launcher, "deixis", "train", str(recipe_file), "-o", str(tmp_path / "run")],
        env={**os.environ, "DEIXIS_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert refused.returncode != 0
    assert "started this process alone" in refused.stderr
    assert not (tmp_path / "run").exists()


def test_torchrun_really_starts_two(recipe_file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "deixis"]
    short = ["stages.0.epochs=1", "--no-tensorboard", "--threads", "1"]
    subprocess.run(
        [*launcher, "train", str(recipe_file), *short, "-o", str(run)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "DEIXIS_HOME": str(tmp_path)},
        capture_output=True,
        timeout=240,
        check=True,
    )
    assert came(run) == 2


def test_a_full_disk_keeps_the_last_checkpoint(recipe_file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    finish(start(1, recipe_file, run))
    before = Run(run).pointer("last")
    assert before is not None
    size = (before / "state.safetensors").stat().st_size

    def little_room() -> None:  # no file may grow beyond this: the kernel refuses the write as a full disk would
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    longer = tmp_path / "longer"
    process = subprocess.run(
        command(1, recipe_file, longer, "--no-tensorboard"),
        env={**os.environ, "OMP_NUM_THREADS": "1", "DEIXIS_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        preexec_fn=little_room,
        timeout=300,
        check=False,
    )
    assert process.returncode == 2
    assert process.stderr.strip().splitlines()[-1].startswith("deixis: cannot write")
    assert "Traceback" not in process.stderr
    assert not any(path.name.endswith(".partial") for path in (longer / "checkpoints").iterdir())
    finish(start(1, recipe_file, longer))  # with room again it goes on
    assert_same(longer, run)


@pytest.mark.parametrize(("asked", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_stops_a_run_can_be_told_from_its_exit_code(
    recipe_file: Path, tmp_path: Path, asked: signal.Signals, code: int
) -> None:
    """Shells and schedulers tell a person who pressed Ctrl-C from a machine that was taken away."""
    run = tmp_path / "run"
    process = start(1, recipe_file, run, "stages.0.epochs=1000")
    wait_for_step(process, run, 2)
    process.send_signal(asked)
    _, errors = process.communicate(timeout=120)
    assert b"go on with --resume" in errors
    assert process.returncode == code
