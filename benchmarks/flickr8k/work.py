"""Train a row where it is missing, and measure it. Runs of one process share the reading of their data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.flickr8k.tables import ROWS, Row
from deixis.atomic import write_text
from deixis.data.collate import RegionSource, sizes_of
from deixis.home import cache_home
from deixis.regions.store.reader import EVERYDAY
from deixis.training.dataset import TrainingData, load_data, read_source
from deixis.training.recipe import DataRecipe, Recipe, Source
from deixis.training.recipe_files import find_recipe
from deixis.training.run import Run
from deixis.training.state import RunState
from deixis.training.train import train
from deixis.types import Example

TIME = "processor-seconds.txt"


@dataclass(slots=True)
class Worker:
    """Trains and measures rows; what they share is read once.

    Args:
        threads: Threads of torch; 1 is kind to others on the machine.
        console: Where progress goes.
    """

    threads: int | None
    console: Console
    _data: dict[str, TrainingData] = field(default_factory=dict)
    _val: dict[str, tuple[list[Example], RegionSource]] = field(default_factory=dict)

    def run(self, row: Row, seed: int) -> Path:
        """Train a row with a seed and what it needs, or go on where it stopped, and return its folder."""
        for name in row.joined:
            self.run(ROWS[name], seed)
        for name in row.needs:
            self.run(ROWS[name], seed if any("{seed}" in part and name in part for part in row.overrides) else 1)
        recipe = recipe_of(row, seed)
        path = run_folder(row, seed)
        if not ready(row, seed):
            data = self._reading(recipe.data)
            began = time.process_time()
            try:
                train(
                    recipe, path, resume=True, threads=self.threads, console=self.console, tensorboard=False, data=data
                )
            finally:  # also when it is stopped, to go on later
                write_text(path / TIME, f"{trained_for(path) + time.process_time() - began:.0f}\n")
            self.console.print(f"{path.name}: {trained_for(path):.0f} s of processor time")
        return path

    def _reading(self, recipe: DataRecipe) -> TrainingData:
        key = repr(recipe)
        if key not in self._data:
            self._data = {key: load_data(recipe, 1)}  # one at a time: photos of two datasets need not fit in memory
        return self._data[key]

    def photos(self, recipe: Recipe, split: str = "val", on: str | None = None) -> tuple[list[Example], RegionSource]:
        """Return the photos of a split with parses, and their regions as the model was trained on."""
        data = recipe.data
        place = data.validation_from or Source(data.dataset, data.store, split, data.reader)
        place = replace(place, split=split)
        if on is not None:
            place = Source(on, place.store.replace("flickr8k", Path(on).name), split)
        key = repr((place, data.regions, data.whole_image, data.word_probs))
        if key not in self._val:
            store, examples = read_source(place, tagged=True)
            fields = _fields(store.fields, data)
            self._val[key] = (
                examples,
                RegionSource((store,), data.regions, fields, data.whole_image, sizes_of(examples)),
            )
        return self._val[key]


def recipe_of(row: Row, seed: int) -> Recipe:
    """Return the recipe of a row with a seed."""
    file, part = find_recipe(row.recipe)
    return file.resolve(settings(row, seed), row=part)


def settings(row: Row, seed: int) -> list[str]:
    """Return the overrides of a row with a seed, as a user would type them."""
    return [f"size={row.size}", *row.settings(seed), f"seed={seed}"]


def run_folder(row: Row, seed: int) -> Path:
    """Return where this benchmark trains a row."""
    return cache_home() / "runs" / "flickr8k" / f"{row.trained}-s{seed}"


def ready(row: Row, seed: int) -> bool:
    """Whether nothing is left to train before a row can be measured."""
    return row.baseline is not None or all(finished(folder) for folder in run_folders(row, seed))


def model_name(row: Row, seed: int) -> str:
    """Return what a user types to load a row's model: its run, or the runs that answer together."""
    return "+".join(str(folder) for folder in run_folders(row, seed))


def run_folders(row: Row, seed: int) -> list[Path]:
    """Return the runs that a row answers with: its own, or those it joins."""
    return [run_folder(ROWS[name], seed) for name in row.joined] or [run_folder(row, seed)]


def finished(path: Path) -> bool:
    """Whether a run was trained to its end: the last epoch of its last stage was validated, or is behind it."""
    run = Run(path)
    if not run.exists:
        return False
    recipe = run.recipe()
    end = recipe.stages[recipe.planned[-1]]
    if recipe.data.validation is None:
        last = run.pointer("last")
        if last is None:
            return False
        at = RunState.load(last).position
        return at.finished or (at.stage == recipe.planned[-1] and at.epoch >= end.epochs)
    if run.pointer("best") is None:
        return False
    return any(entry.get("stage") == end.name and entry.get("epoch") == end.epochs for entry in validations(run))


def validations(run: Run) -> list[dict[str, Any]]:
    """Return what a run logged at its validations."""
    return [entry for entry in run.entries() if "validation" in entry]


def trained_for(path: Path) -> float:
    """Return the seconds of processor time that training took, as the runner noted it; 0 where it did not."""
    note = path / TIME
    return float(note.read_text()) if note.exists() else 0.0


def _fields(stored: Sequence[str], data: DataRecipe) -> tuple[str, ...]:
    return tuple(name for name in (*EVERYDAY, *(("word_probs",) if data.word_probs else ())) if name in stored)
