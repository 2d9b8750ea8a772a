"""From a recipe to a trained run: set up processes, data and folder, then let the loop work; over one or more seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.state import AcceleratorState
from accelerate.utils import broadcast_object_list
from rich.console import Console

from deixis.atomic import write_json
from deixis.errors import DeixisError
from deixis.locks import only_writer
from deixis.training.check import check_recipe
from deixis.training.dataset import TrainingData, load_data
from deixis.training.launch import is_launched, naming_the_lost, require_processes
from deixis.training.loop import Trainer
from deixis.training.preflight import check_files
from deixis.training.recipe import Precision, Recipe
from deixis.training.run import Run
from deixis.training.start import starting_regions, starting_words
from deixis.training.watch import Watch


@dataclass(frozen=True, slots=True)
class Trained:
    """What a run gave: metrics of its best checkpoint, for each seed."""

    path: Path
    metrics: dict[int, dict[str, float]] = field(default_factory=dict)

    @property
    def mean(self) -> dict[str, float]:
        """Mean over seeds."""
        return {name: statistics.fmean(values) for name, values in self._columns().items()}

    @property
    def deviation(self) -> dict[str, float]:
        """Standard deviation over seeds, of the sample (n - 1); 0 for one seed."""
        return {name: statistics.stdev(values) if len(values) > 1 else 0.0 for name, values in self._columns().items()}

    def _columns(self) -> dict[str, list[float]]:
        rows = list(self.metrics.values())
        return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def train(
    recipe: Recipe,
    path: Path,
    *,
    seeds: int = 1,
    resume: bool = False,
    threads: int | None = None,
    console: Console | None = None,
    tensorboard: bool = True,
    data: TrainingData | None = None,
    processes: int | None = None,
) -> Trained:
    """Train ``recipe`` in the folder ``path``; with several seeds, each in ``path/seed-N``.

    Args:
        recipe: What to do; further seeds count up from the recipe's.
        path: The run's folder, which must not hold a run yet unless ``resume``.
        seeds: How many seeds to train.
        resume: Go on where the run in the folder stopped; start where there is none.
        threads: Threads of this process; torch's choice when None.
        console: Where progress goes; stderr when None.
        tensorboard: Also write TensorBoard files where the package is there.
        data: What ``recipe.data`` names, where it is loaded already: many short runs share one reading.
        processes: How many processes must have come together; fewer or more is an error. None: as many as came.
    """
    check_recipe(recipe)
    if seeds < 1:
        raise DeixisError(f"{seeds} seeds cannot be trained: give 1 or more")
    if threads is not None:
        if threads < 1:
            raise DeixisError(f"{threads} threads cannot work: give 1 or more")
        torch.set_num_threads(threads)
    recipe = replace(recipe, precision=_precision(recipe.precision, path if seeds == 1 else None, resume=resume))
    AcceleratorState._reset_state()  # it remembers the precision of the run before this one in the same process
    accelerator = Accelerator(
        cpu=is_launched() and not torch.accelerator.is_available(),  # else it looks for GPUs and stays alone
        mixed_precision="bf16" if recipe.precision == "bf16" else "no",
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
    require_processes(processes, accelerator.num_processes)
    if data is None:
        check_files(recipe)  # what does not fit is said before a folder is begun
    words = starting_words(recipe)
    plans = [replace(recipe, seed=recipe.seed + at) for at in range(seeds)]
    places = [path if seeds == 1 else path / f"seed-{plan.seed}" for plan in plans]
    trained = Trained(path)
    with ExitStack() as locks:
        _begin(plans, places, accelerator, locks, resume=resume)
        for plan, place in zip(plans, places, strict=True):
            if data is None:
                with accelerator.main_process_first():  # so that captions are parsed once and the others read the parse
                    data = load_data(words, plan.seed, starting_regions(recipe))
            run = Run(place)
            watch = Watch(enabled=accelerator.is_main_process, console=console, run=run, tensorboard=tensorboard)
            trainer = Trainer(plan, replace(data, train=replace(data.train, seed=plan.seed)), run, accelerator, watch)
            with naming_the_lost():
                trained.metrics[plan.seed] = trainer.fit(resume=resume)
            accelerator.free_memory()
        if seeds > 1 and accelerator.is_main_process:
            facts = {"seeds": {str(seed): values for seed, values in trained.metrics.items()}}
            write_json(path / "seeds.json", {**facts, "mean": trained.mean, "deviation": trained.deviation})
    return trained


def _precision(asked: Precision, path: Path | None, *, resume: bool) -> Precision:
    """Return float32 or bf16 for ``auto``: what a run to be resumed has, else bf16 where the hardware has it."""
    if asked != "auto":
        return asked
    if resume and path is not None and Run(path).exists:
        return Run(path).recipe().precision
    if torch.cuda.is_available():
        return "bf16" if torch.cuda.is_bf16_supported() else "float32"
    fast = bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return "bf16" if fast else "float32"


def _begin(
    plans: Sequence[Recipe], places: Sequence[Path], accelerator: Accelerator, locks: ExitStack, *, resume: bool
) -> None:
    """Let the main process take, start or check the folders, and tell every process if it could not."""
    problem: list[str | None] = [None]
    if accelerator.is_main_process:
        try:
            for plan, place in zip(plans, places, strict=True):
                run = Run(place)
                if not run.exists:  # should nothing come of it, the next try finds no folder in its way
                    locks.callback(run.withdraw)
                run.make_folder()
                locks.enter_context(only_writer(place))
                if resume and run.exists:
                    changed = run.recipe().differences(plan)
                    if changed:
                        raise DeixisError(
                            f"the recipe is not the one {place} was begun with ({', '.join(changed[:4])}): "
                            "resume with the same recipe and overrides, or choose another folder with -o"
                        )
                else:
                    run.begin(plan)
        except DeixisError as error:
            problem = [str(error)]
    broadcast_object_list(problem)
    if problem[0] is not None:
        raise DeixisError(problem[0])
