"""Train a row where it is missing, and measure it. Runs of one process share the reading of their data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.flickr8k.results import Result, fingerprint
from benchmarks.flickr8k.tables import CAPTIONS, CLASSES, PRIOR, Row, Table
from deixis.data.collate import RegionSource
from deixis.errors import DeixisError
from deixis.grounding.base import AnswerOptions, WordGrounder
from deixis.grounding.scan import Scan
from deixis.home import cache_home
from deixis.metrics.bootstrap import MeanSample
from deixis.metrics.phrases import ANY_BOX, PROTOCOLS, score_phrases
from deixis.regions.store import EVERYDAY
from deixis.training.dataset import TrainingData, load_data, read_source
from deixis.training.evaluate import EvaluationOptions, evaluate
from deixis.training.files import write_text
from deixis.training.models import load
from deixis.training.phrases import METRICS, phrase_cases
from deixis.training.places import find
from deixis.training.recipe import DataRecipe, Recipe, Source
from deixis.training.recipe_files import find_recipe
from deixis.training.run import Run
from deixis.training.train import train
from deixis.types import Example

SPLIT, TIME = "val", "processor-seconds.txt"


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
        """Train a row with a seed, or go on where it stopped, and return its folder."""
        recipe = recipe_of(row, seed)
        path = run_folder(row, seed)
        if not finished(path):
            if path != home(row, seed):
                raise DeixisError(f"{path} is not finished: let it end, or give the row a run of its own")
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

    def photos(self, recipe: Recipe) -> tuple[list[Example], RegionSource]:
        """Return the validation photos with parses, and their regions as the model was trained on."""
        data = recipe.data
        place = data.validation_from or Source(data.dataset, data.store, SPLIT, data.reader)
        key = repr((place, data.regions, data.word_probs))
        if key not in self._val:
            store, examples = read_source(place, tagged=True)
            self._val[key] = examples, RegionSource((store,), data.regions, _fields(store.fields, data))
        return self._val[key]


def recipe_of(row: Row, seed: int) -> Recipe:
    """Return the recipe of a row with a seed."""
    file, part = find_recipe(row.recipe)
    return file.resolve([f"size={row.size}", *row.overrides, f"seed={seed}"], row=part)


def run_folder(row: Row, seed: int) -> Path:
    """Return where a row is or was trained."""
    elsewhere = cache_home() / "runs" / row.run if row.run is not None else None
    if elsewhere is not None and seed == 1 and Run(elsewhere).exists:
        return elsewhere
    return home(row, seed)


def home(row: Row, seed: int) -> Path:
    """Return where this benchmark trains a row."""
    return cache_home() / "runs" / "flickr8k" / f"{row.trained}-s{seed}"


def finished(path: Path) -> bool:
    """Whether a run was trained to its end: the last epoch of its last stage was validated."""
    run = Run(path)
    if not run.exists or run.pointer("best") is None:
        return False
    recipe = run.recipe()
    end = recipe.stages[recipe.planned[-1]]
    return any(entry.get("stage") == end.name and entry.get("epoch") == end.epochs for entry in validations(run))


def validations(run: Run) -> list[dict[str, Any]]:
    """Return what a run logged at its validations."""
    return [entry for entry in run.entries() if "validation" in entry]


def measure(worker: Worker, table: Table, row: Row, seed: int, path: Path) -> Result:
    """Measure a trained row as its table asks."""
    return (measure_phrases if table.kind == "phrases" else measure_captions)(worker, row, seed, path)


def measure_phrases(worker: Worker, row: Row, seed: int, path: Path) -> Result:
    """Score a grounder on every annotated phrase of val, bare and with the prior, under both protocols."""
    loaded = load(str(path))
    model = loaded.model
    if not isinstance(model, WordGrounder):
        raise DeixisError(f"{path} holds a {loaded.kind}, which grounds no words: it cannot be a row of this table")
    examples, source = worker.photos(loaded.config.recipe)
    answer_as(model, row)
    bare = model.answers
    samples: dict[str, dict[str, Any]] = {}
    by_type: dict[str, dict[str, dict[str, float]]] = {}
    counts: list[int] = []
    photos = ""
    for variant, exponent in (("bare", 0.0), ("prior", PRIOR)):
        model.answers = replace(bare, objectness=exponent, regionness=0.0)
        cases = phrase_cases(model, loaded.vocabulary, examples, source, batch=16)
        samples[variant] = {}
        for protocol in PROTOCOLS.values():
            scores = score_phrases(cases, protocol)
            for metric in METRICS:
                sample = scores.samples[metric]
                assert isinstance(sample, MeanSample)
                samples[variant][f"{protocol.name} {metric}"] = [int(hits) for hits in sample.total]
                counts = [int(count) for count in sample.count]
            photos = fingerprint(scores.groups)
            if protocol is ANY_BOX:
                by_type[variant] = {
                    group.name: {"count": group.count, **{m: round(group.scores[m], 4) for m in ("R@1", "pointing")}}
                    for group in scores.breakdowns["class"]
                }
    model.answers = bare
    run = Run(path)
    return Result(
        row=row.name,
        seed=seed,
        recipe=row.recipe,
        overrides=row.overrides,
        split=SPLIT,
        photos=photos,
        regions=source.fingerprint,
        steps=loaded.config.step,
        seconds=trained_for(path),
        counts=counts,
        samples=samples,
        by_type=by_type,
        facts={"validations": validations(run)[-1:], **last_losses(run)},
    )


def answer_as(model: WordGrounder, row: Row) -> None:
    """Let a model answer as the row says."""
    known = AnswerOptions.__dataclass_fields__
    model.answers = replace(model.answers, **{k: v for k, v in row.answer.items() if k in known})
    own: dict[str, Any] = {k: v for k, v in row.answer.items() if k not in known}
    if own:
        if not isinstance(model, Scan):
            raise DeixisError(f"row {row.name} asks for {', '.join(own)}, which only SCAN knows")
        if "words" in own:
            own["words"] = (own["words"],)
        model.config = replace(model.config, **own)


def measure_captions(worker: Worker, row: Row, seed: int, path: Path) -> Result:
    """Score a captioner on val: captions, grounding F1 over the 480 classes, attention on the references."""
    loaded = load(str(path))
    data = loaded.config.recipe.data
    options = EvaluationOptions(split=SPLIT, store=data.store, classes=find(CLASSES, "data"), replicates=0)
    done = evaluate(loaded, data.dataset, options)
    samples: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    for section in done.sections:
        samples |= {name: section.samples[name].to_json() for name in CAPTIONS if name in section.samples}
        facts |= {name: round(value, 5) for name, value in section.scores.items()}
        facts |= {part.title: part.rows for part in section.breakdowns if part.title.startswith("Error types")}
    return Result(
        row=row.name,
        seed=seed,
        recipe=row.recipe,
        overrides=row.overrides,
        split=SPLIT,
        photos=fingerprint([example.id for example in done.examples]),
        regions=done.source.fingerprint,
        steps=loaded.config.step,
        seconds=trained_for(path),
        counts=(),
        samples={"bare": samples},
        facts=facts,
    )


def last_losses(run: Run) -> dict[str, float]:
    """Return the mean of each loss over the last fifty logged steps, to see whether a part took part at all."""
    entries = [entry for entry in run.entries() if "loss" in entry][-50:]
    skipped = {"step", "epoch", "stage", "lr", "captions_per_second", "wait", "gradient_norm"}
    names = sorted({name for entry in entries for name in entry} - skipped)
    return {name: round(float(np.mean([entry[name] for entry in entries if name in entry])), 5) for name in names}


def trained_for(path: Path) -> float:
    """Return the seconds of processor time that training took, as the runner noted it; 0 where it did not."""
    note = path / TIME
    return float(note.read_text()) if note.exists() else 0.0


def _fields(stored: Sequence[str], data: DataRecipe) -> tuple[str, ...]:
    return tuple(name for name in (*EVERYDAY, *(("word_probs",) if data.word_probs else ())) if name in stored)
