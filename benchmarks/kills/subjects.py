"""The commands that are killed, on small data made of the example photos, and what must be equal in the end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from deixis.cli.main import main
from deixis.data.open import open_dataset
from deixis.data.scenes import make_scenes
from deixis.types import ImageFile

EXAMPLES = Path(__file__).parents[2] / "examples" / "photos"
PHOTOS = 12
SAID = {
    "astronaut": ("A woman in an orange suit holds a helmet.", "A woman smiles beside a flag."),
    "chelsea": ("A cat with green eyes looks at the camera.", "A cat on a blanket."),
    "coffee": ("A cup of coffee on a table.", "A cup and a spoon on a wooden table."),
}
RECIPE = """
about: {{title: A captioner that is killed}}
data: {{dataset: {photos}, store: {store}, regions: 9, min_count: 1, parse: false}}
model: {{kind: captioner, width: 16}}
stages:
  - {{name: words, epochs: 2, batch: 4, objectives: [cross_entropy], optimizer: {{lr: 5e-3}}}}
  - {{name: more, epochs: 1, batch: 4, objectives: [cross_entropy], optimizer: {{lr: 1e-3}}}}
validation: {{samples: 1}}
save_every: 1
log_every: 1
"""
EXTRACTOR = """
data: [{{path: {scenes}, splits: [train], things: annotated}}]
teachers: {folder}
weights: {folder}
boxes: {folder}/regions.jsonl
words: 12
processes: 1
shape: {{trunk: efficientnet-lite0, pyramid: 16, depth: 1, describe: 16, hidden: 32, feature: 24}}
schedule: {{steps: 4, draws: {{regions: 1, captions: 1}}, warm_up: 1, frozen_steps: 1, teach_every: 0, save_every: 2}}
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """A command to kill."""

    arguments: Callable[[Path], list[str]]
    """Given the folder it writes into; called again after a kill it must go on."""
    result: Callable[[Path], Mapping[str, object]]
    """What must not depend on kills."""
    begin: Callable[[Path], object] = lambda folder: None
    """Puts what it starts from into the folder."""


def make_data(folder: Path) -> None:
    """Twelve photos with captions, cut out of the three examples; their regions and index; drawn scenes; recipes."""
    photos = folder / "photos"
    photos.mkdir(parents=True)
    lines = []
    for number in range(PHOTOS):
        name, captions = list(SAID.items())[number % len(SAID)]
        with Image.open(EXAMPLES / f"{name}.jpg") as whole:
            shown = whole.convert("RGB").resize((160, 120))
        shown.crop((number, number, 140 + number, 105 + number)).save(photos / f"{number:02}.jpg", quality=90)
        lines += [{"file_name": f"{number:02}.jpg", "text": text} for text in captions]
    (photos / "metadata.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    main_quietly(["regions", "extract", str(photos), "-o", str(folder / "store"), "--processes", "0", "--json"])
    (folder / "recipe.yaml").write_text(RECIPE.format(photos=photos, store=folder / "store"))
    main_quietly(["search", str(photos), "--index", str(folder / "index"), "--json"])
    _make_scenes(folder)


def _make_scenes(folder: Path) -> None:
    """Scenes whose things and regions are known, so that an extractor learns without any teacher."""
    make_scenes(folder / "scenes", {"train": PHOTOS})
    dataset = open_dataset(folder / "scenes")
    with (folder / "regions.jsonl").open("w") as lines:
        for example in dataset.examples("train"):
            assert isinstance(example.source, ImageFile)
            boxes = [[*box, 0.9] for caption in example.captions for phrase in caption.phrases for box in phrase.boxes]
            row = {"data": dataset.name, "id": example.source.path.name, "size": example.size, "boxes": boxes}
            lines.write(json.dumps(row) + "\n")
    (folder / "extractor.yaml").write_text(EXTRACTOR.format(scenes=folder / "scenes", folder=folder))


def main_quietly(arguments: list[str]) -> None:
    """Run a command in this process; it must end well."""
    try:
        main(arguments)
    except SystemExit as left:
        if left.code:
            raise RuntimeError(f"deixis {' '.join(arguments)} left with {left.code}") from left


def files(folder: Path) -> dict[str, object]:
    """The bytes of all files that a command has left, but for its cache."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_relative_to(folder / "home"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def trained(folder: Path) -> dict[str, object]:
    """Weights and state of the last and best checkpoints, and the losses; times in the log differ of themselves."""
    run = folder / "run"
    pointers = json.loads((run / "checkpoints.json").read_text())
    kept = {
        f"{which}/{file.name}": file.read_bytes()
        for which, name in sorted(pointers.items())
        for file in sorted((run / "checkpoints" / name).iterdir())
        if file.suffix == ".safetensors"
    }
    log = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {**kept, "losses": [(entry["step"], entry["loss"]) for entry in log if "loss" in entry]}


def subjects(data: Path) -> dict[str, Subject]:
    """All commands that are killed."""
    photos = str(data / "photos")
    return {
        "extract": Subject(
            lambda folder: ["regions", "extract", photos, "-o", str(folder / "store"), "--processes", "0", "--json"],
            files,
        ),
        "text": Subject(
            lambda folder: [
                "text", "prepare", photos, "-o", str(folder / "text"), "--processes", "1", "--threshold", "1",
                "--class-threshold", "1", "--relations-more-than", "0", "--json",
            ],
            files,
        ),
        "train": Subject(
            lambda folder: [
                "train", str(data / "recipe.yaml"), "-o", str(folder / "run"), "--resume", "--threads", "1",
                "--no-tensorboard", "--json",
            ],
            trained,
        ),
        "caption": Subject(lambda folder: ["caption", photos, "-o", str(folder / "out.jsonl"), "--beam", "1"], files),
        "label": Subject(lambda folder: ["label", photos, "-o", str(folder / "labels.json"), "--json"], files),
        "regions-train": Subject(
            lambda folder: [
                "regions", "train", str(data / "extractor.yaml"), "-o", str(folder / "run"),
                "--cache", str(folder / "cache"), "--json",
            ],
            files,
        ),
        "search": Subject(lambda folder: ["search", photos, "--index", str(folder / "index"), "--json"], files),
        "search-rebuild": Subject(
            lambda folder: ["search", photos, "--index", str(folder / "index"), "--rebuild", "--json"],
            files,
            lambda folder: shutil.copytree(data / "index", folder / "index"),
        ),
    }  # fmt: skip


def left_over(folder: Path) -> list[str]:
    """What only a writer needs, and nobody may find after it is done: half files, locks, temporary folders."""
    endings = (".partial", ".lock", ".tmp", ".drafts.jsonl")
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.name.endswith(endings))


def fresh(folder: Path, subject: Subject) -> Path:
    """A folder for the next victim, with what it starts from."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    subject.begin(folder)
    return folder
