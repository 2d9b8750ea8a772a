"""The whole of `deixis regions train`: prepare, learn proposals, learn words, write the extractor."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

from deixis.errors import DeixisError
from deixis.regions.lite import LiteExtractor, save_lite
from deixis.regions.network.detector import LiteNetwork, LiteShape
from deixis.regions.network.select import Ranking
from deixis.regions.training.data import Corpus
from deixis.regions.training.state import read_tensors, write_tensors
from deixis.regions.training.train import ProposalStage, report_to, train_proposals
from deixis.regions.training.words import WordStage, pool_photos, read_pooled, train_words

Report = Callable[[dict[str, float]], None]


@dataclass(frozen=True, slots=True)
class DataSource:
    """A dataset folder and the splits to learn from."""

    path: str
    splits: tuple[str, ...] = ("train",)
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class LiteRecipe:
    """Everything that decides how the extractor comes out."""

    data: tuple[DataSource, ...]
    teachers: str
    boxes: str | None = None
    """MobileSAM's boxes made before."""
    more_boxes: int = 0
    """Run MobileSAM on so many more photos."""
    words: int = 1000
    processes: int = 2
    shape: LiteShape = field(default_factory=LiteShape)
    ranking: Ranking = field(default_factory=Ranking)
    proposals: ProposalStage = field(default_factory=ProposalStage)
    language: WordStage = field(default_factory=WordStage)


def learn(recipe: LiteRecipe, cache: Path, run: Path, about: dict[str, Any], stop_after: int | None = None) -> Path:
    """Train from a prepared cache in the folder `run`, going on where a killed run stopped; give the extractor.

    With `stop_after` the run ends after so many steps of its first part, as a kill would end it.
    """
    run.mkdir(parents=True, exist_ok=True)
    if recipe.processes > 1:
        with tempfile.TemporaryDirectory() as meeting:
            arguments = (recipe, cache, run, f"file://{meeting}/point", stop_after)
            spawn(_work, arguments, nprocs=recipe.processes)  # type: ignore[no-untyped-call]
    else:
        _learn_part(recipe, cache, run, 0, 1, stop_after)
    if stop_after is not None and stop_after < recipe.proposals.steps:
        return run
    corpus = _corpus(recipe, cache)
    network = _network(run, _shape(recipe, corpus))
    pooled = read_pooled(sorted(run.glob("pooled-*")))
    train_words(network.regions, pooled, corpus, recipe.language, report_to(run / "words.jsonl"))
    save_lite(run / "lite", network, corpus.word_names, recipe.ranking, about | {"recipe": asdict(recipe)})
    LiteExtractor.load(run / "lite")  # what was written can be read
    return run / "lite"


def _work(rank: int, recipe: LiteRecipe, cache: Path, run: Path, meeting: str, stop_after: int | None) -> None:
    """One of several processes."""
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // recipe.processes))
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=recipe.processes)
    try:
        _learn_part(recipe, cache, run, rank, recipe.processes, stop_after)
    finally:
        dist.destroy_process_group()


def _learn_part(recipe: LiteRecipe, cache: Path, run: Path, rank: int, world: int, stop_after: int | None) -> None:
    corpus = _corpus(recipe, cache)
    shape = _shape(recipe, corpus)
    report = report_to(run / "proposals.jsonl")
    train_proposals(corpus, shape, recipe.proposals, run / "proposals", rank, world, report, stop_after)
    if stop_after is not None and stop_after < recipe.proposals.steps:
        return
    if world > 1:
        dist.barrier()
    if rank == 0:
        state = read_tensors(run / "proposals" / "average.safetensors")
        network = {name[8:]: value for name, value in state.items() if name.startswith("network.")}
        write_tensors(run / "network.safetensors", network)
    if world > 1:
        dist.barrier()
    ids = corpus.ids[rank::world]
    pool_photos(_network(run, shape), corpus, ids, run / f"pooled-{rank}", recipe.language.regions, recipe.ranking)


def _corpus(recipe: LiteRecipe, cache: Path) -> Corpus:
    splits = tuple(dict.fromkeys(split for source in recipe.data for split in source.splits))
    corpus = Corpus(cache, splits)
    if not corpus.ids:
        raise DeixisError(f"no photo of the splits {', '.join(splits)} is in the cache {cache}")
    return corpus


def _shape(recipe: LiteRecipe, corpus: Corpus) -> LiteShape:
    return LiteShape(**(asdict(recipe.shape) | {"words": len(corpus.word_names)}))


def _network(run: Path, shape: LiteShape) -> LiteNetwork:
    state = read_tensors(run / "network.safetensors")
    network = LiteNetwork(shape)
    network.load_state_dict(state)
    return network.to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload,no-any-return]
