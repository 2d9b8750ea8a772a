"""The whole way with the real commands and nothing beside the repository: draw, extract, train, measure, answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deixis.cli.main import app
from deixis.data.open import open_dataset
from deixis.training.run import Run

pytestmark = pytest.mark.recipe

SMALL = ["size=cpu", "data.regions=20", "data.min_count=2", "model.width=96", "log_every=1", "save_every=3"]
SMALL += ["model.encoder.dropout=0.1", "model.decoder.word_dropout=0.1", "model.decoder.output_dropout=0.1"]
SMALL += ["stages.words.epochs=20", "stages.words.batch=6", "stages.words.schedule={kind: constant}"]
SMALL += ["stages.words.optimizer.lr=4e-3", "validation.every=10"]
STEPS = 20 * 24 // 6


def call(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the drawn dataset and its regions."""
    folder = tmp_path_factory.mktemp("whole-way")
    call("data", "scenes", folder / "scenes", "--train", "24", "--val", "8", "--test", "6")
    call("regions", "extract", folder / "scenes", "-o", folder / "store", "--max-regions", "20", "--processes", "0")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    """A captioner: killed on the way without warning, and resumed."""
    run = folder / "run"
    command = [sys.executable, "-m", "deixis", "train", "captioning/baseline", *SMALL]
    command += [f"data.dataset={folder / 'scenes'}", f"data.store={folder / 'store'}"]
    command += ["-o", str(run), "--no-tensorboard", "--threads", "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DEIXIS_HOME": str(folder)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + 240
    while len(_losses(run)) < STEPS // 2 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    assert process.poll() is None, "it should still be training when it is killed"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(_losses(run)) < STEPS
    subprocess.run([*command, "--resume"], env=environment, check=True, capture_output=True)
    return run


def _losses(run: Path) -> list[float]:
    return [entry["loss"] for entry in Run(run).entries() if "loss" in entry]


def test_a_killed_and_resumed_run_learns_and_is_validated(run: Path) -> None:
    losses = _losses(run)
    assert len(losses) == STEPS, "every step is logged once, those before and after the kill"
    assert sum(losses[-4:]) < 0.7 * sum(losses[:4])
    validated = [entry["validation"] for entry in Run(run).entries() if "validation" in entry]
    assert len(validated) == 2
    assert validated[-1]["cider"] > validated[0]["cider"]
    assert (run / "report.html").is_file()


def test_it_is_measured_on_scenes_it_has_not_seen(run: Path, folder: Path) -> None:
    told = call(
        "evaluate", run, folder / "scenes", "--split", "test", "--store", folder / "store",
        "--replicates", "0", "--json", "-o", folder / "measured",
    )  # fmt: skip
    scores = {name: value for section in json.loads(told)["sections"] for name, value in section["scores"].items()}
    assert scores["BLEU-1"] > 0.3, "twenty epochs on 24 drawings teach the few words there are"
    assert {"CIDEr", "F1_all", "F1_loc", "attention_accuracy"} <= set(scores)
    captions = (folder / "measured" / "captions.jsonl").read_text().splitlines()
    assert len(captions) == 6


def test_it_answers_and_so_does_a_bundle_with_the_shipped_grounder(run: Path, folder: Path) -> None:
    scene = folder / "scenes" / "test" / "scene-0000.png"
    answer = json.loads(call("caption", scene, "--model", run, "--json"))
    examples = open_dataset(folder / "scenes").examples()
    said = {str(word).lower() for example in examples for caption in example.captions for word in caption.words}
    assert answer["words"]
    assert {word["text"].lower() for word in answer["words"]} <= said
    call("bundle", run, "lite", "-o", folder / "bundle")
    both = json.loads(call("caption", scene, "--model", folder / "bundle", "--json"))
    assert both["text"]
    grounded = json.loads(call("ground", scene, "a car", "--model", folder / "bundle", "--json"))
    assert [phrase["text"] for phrase in grounded["phrases"]] == ["a car"]


def test_the_shipped_grounder_goes_on_learning(folder: Path) -> None:
    """The recipe of `docs/your-own-data.md`: new words, no boxes, validated by retrieval."""
    run = folder / "grounder"
    small = [f"data.dataset={folder / 'scenes'}", f"data.store={folder / 'store'}", "log_every=1"]
    small += ["stages.evidence.epochs=6", "stages.evidence.batch=12", "stages.evidence.schedule.warmup=0"]
    call("train", "grounding/own", *small, "-o", run, "--no-tensorboard")
    entries = list(Run(run).entries())
    losses = [entry["evidence"] for entry in entries if "evidence" in entry]
    assert len(losses) == 12
    assert sum(losses[-3:]) < sum(losses[:3])
    found = [entry["validation"]["retrieval"] for entry in entries if "validation" in entry]
    assert max(found) >= found[0]
