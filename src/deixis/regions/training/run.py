"""The whole of `deixis regions train`: learn from a prepared cache, write the extractor."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

from deixis.regions.lite import LiteExtractor, save_lite
from deixis.regions.network.detector import LiteNetwork, LiteShape
from deixis.regions.network.select import Ranking
from deixis.regions.training.data import Corpus
from deixis.regions.training.state import read_tensors
from deixis.regions.training.train import Report, Schedule, train

THINGS = ("annotated", "detector")


@dataclass(frozen=True, slots=True)
class DataSource:
    """A dataset folder and the splits to learn from."""

    path: str
    splits: tuple[str, ...] = ("train",)
    things: str = "detector"
    """Where boxes of COCO's categories come from: "annotated" in the dataset, or found by the "detector"."""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class LiteRecipe:
    """Everything that decides how the extractor comes out."""

    data: tuple[DataSource, ...]
    teachers: str
    weights: str
    """Folder of the published weights that training starts from and learns from."""
    boxes: str | None = None
    """MobileSAM's boxes made before."""
    more_boxes: int = 0
    """Run MobileSAM on so many more photos."""
    words: int = 2000
    processes: int = 2
    shape: LiteShape = field(default_factory=LiteShape)
    ranking: Ranking = field(default_factory=Ranking)
    """How the network chooses its own proposals while it learns."""
    final_ranking: Ranking | None = None
    """How the written extractor chooses; None for as it learned. `benchmarks.ranking` compares them."""
    schedule: Schedule = field(default_factory=Schedule)


def learn(
    recipe: LiteRecipe, cache: Path, weights: Path, run: Path, about: dict[str, Any], stop_after: int | None = None
) -> Path:
    """Train from a prepared cache in the folder `run`, going on where a killed run stopped; give the extractor.

    With `stop_after` the run ends after so many steps, as a kill would end it; what it has learnt so far is written.
    """
    run.mkdir(parents=True, exist_ok=True)
    if recipe.processes > 1:
        with tempfile.TemporaryDirectory() as meeting:
            arguments = (recipe, cache, weights, run, f"file://{meeting}/point", stop_after)
            spawn(_work, arguments, nprocs=recipe.processes)  # type: ignore[no-untyped-call]
    else:
        _learn_part(recipe, cache, weights, run, 0, 1, stop_after)
    return write_extractor(recipe, cache, run, about)


def write_extractor(recipe: LiteRecipe, cache: Path, run: Path, about: dict[str, Any]) -> Path:
    """Write the extractor from the averaged weights of a run's last checkpoint."""
    corpus = Corpus(cache)
    network = LiteNetwork(_shape(recipe, corpus))
    state = read_tensors(run / "state" / "average.safetensors")
    network.load_state_dict({name[8:]: value for name, value in state.items() if name.startswith("network.")})
    ranking = recipe.final_ranking or recipe.ranking
    save_lite(run / "lite", network, corpus.word_names, ranking, about | {"recipe": asdict(recipe)})
    LiteExtractor.load(run / "lite")  # what was written can be read
    return run / "lite"


def _work(
    rank: int, recipe: LiteRecipe, cache: Path, weights: Path, run: Path, meeting: str, stop_after: int | None
) -> None:
    """One of several processes."""
    _leave_with_parent()
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // recipe.processes))
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=recipe.processes)
    try:
        _learn_part(recipe, cache, weights, run, rank, recipe.processes, stop_after)
    finally:
        dist.destroy_process_group()


def _leave_with_parent() -> None:
    """End this process when the one that started it is gone: left alone, it would write into a run begun anew."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _learn_part(
    recipe: LiteRecipe, cache: Path, weights: Path, run: Path, rank: int, world: int, stop_after: int | None
) -> None:
    corpus = Corpus(cache)
    report = Report(run / "losses.jsonl")
    shape = _shape(recipe, corpus)
    train(corpus, shape, recipe.ranking, recipe.schedule, weights, run / "state", rank, world, report, stop_after)


def _shape(recipe: LiteRecipe, corpus: Corpus) -> LiteShape:
    return LiteShape(**(asdict(recipe.shape) | {"words": len(corpus.word_names)}))
