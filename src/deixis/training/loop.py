"""The training loop: stages, epochs, steps, validation and checkpoints, on one process or many.

Only the :class:`~deixis.training.stage.Stage` is prepared by ``accelerate``. Every process walks through the same
global batches and takes its shard, so the number of processes changes neither order nor loss.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from deixis.data.batch import Batch
from deixis.data.sampler import Index, Sampler, split
from deixis.errors import BadFileError, BadRecipeError, DeixisError
from deixis.models.checkpoint import fill, load_config, load_weights, named, save_model, under
from deixis.registry import build
from deixis.strict import unknown_key
from deixis.training.dataset import TrainingData
from deixis.training.optimize import clip_gradients, make_optimizer
from deixis.training.pointing import measure_pointing
from deixis.training.prefetch import prefetch
from deixis.training.random import capture, restore, seed_everything
from deixis.training.recipe import Recipe, StageRecipe
from deixis.training.run import SAMPLES, Run
from deixis.training.schedules import Schedule
from deixis.training.signals import StopRequest
from deixis.training.stage import Moment, Stage, build_model, build_stage
from deixis.training.start import start_from
from deixis.training.state import Position, RunState, load_optimizer, optimizer_tensors
from deixis.training.watch import Watch

MEASURED = 16
"""Images at a time, with all their captions, on which pointing is measured."""


class StoppedError(DeixisError):
    """A signal asked the run to stop; everything is saved."""

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


@dataclass(slots=True)
class _Work:
    """What a stage works with."""

    recipe: StageRecipe
    stage: Stage
    wrapped: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: Schedule
    sampler: Sampler


class Trainer:
    """Trains one model by one recipe in one run folder.

    Args:
        recipe: What to do.
        data: Images, captions, vocabulary.
        run: The folder; written by the main process only.
        accelerator: One process or several, device and precision.
        watch: Progress for people, and TensorBoard.
    """

    def __init__(self, recipe: Recipe, data: TrainingData, run: Run, accelerator: Accelerator, watch: Watch) -> None:
        self.recipe, self.data, self.run, self.accelerator, self.watch = recipe, data, run, accelerator, watch
        self.rank, self.processes = accelerator.process_index, accelerator.num_processes
        seed_everything(recipe.seed)  # every process makes the same model …
        self.model, self.config = build_model(recipe, data)
        start_from(self.model, recipe, data)
        self.model.to(accelerator.device)
        seed_everything(recipe.seed, self.rank)  # … and then draws its own numbers
        self.generator = torch.Generator().manual_seed(recipe.seed * 1_000_003 + self.rank)
        self.position = Position(stage=recipe.planned.start)
        self.metrics: dict[str, float] = {}
        self.stop = StopRequest()
        self._validation: Any = None
        self._carried: dict[str, dict[str, Tensor]] = {}

    def fit(self, *, resume: bool = False) -> dict[str, float]:
        """Train to the end and return the metrics of the best checkpoint."""
        state = self._load_state() if resume else None
        with self.stop, self.watch:
            while self.position.stage < self.recipe.planned.stop:
                self._train_stage(state)
                state = None
        if self.accelerator.is_main_process:
            self.run.close()
        best = self.run.pointer("best") or self.run.pointer("last")
        return dict(load_config(best).metrics) if best is not None else {}

    def _train_stage(self, state: RunState | None) -> None:
        position, recipe = self.position, self.recipe.stages[self.position.stage]
        work = self._prepare(recipe, state)
        if self.recipe.validation.first and position.step == 0 and state is None and self.data.validation is not None:
            self._save(work, self._validate(work))
        while not self._stage_is_over(recipe):
            self._train_epoch(work)
            position.epoch, position.batch = position.epoch + 1, 0
            last = self._stage_is_over(recipe)
            best = None
            if self.data.validation is not None and (position.epoch % self.recipe.validation.every == 0 or last):
                best = self._validate(work)
            self._save(work, best)
        self._next_stage(work)

    def _stage_is_over(self, recipe: StageRecipe) -> bool:
        tired = recipe.patience is not None and self.position.stale >= recipe.patience
        return tired or self.position.epoch >= recipe.epochs

    def _prepare(self, recipe: StageRecipe, state: RunState | None) -> _Work:
        sampler = Sampler(len(self.data.train), recipe.batch, seed=self.recipe.seed, stage=self.position.stage)
        sampler.check(self.processes, recipe.accumulate)
        for name, value in recipe.set.items():
            _set_attribute(self.model, name, value, recipe.name)
        stage = build_stage(recipe, self.model, self.data, self.generator, self.watch.work)
        for name, weights in self._carried.items():
            if name in stage.objectives:
                fill(stage.objectives[name], weights, f"objective {name} of the stage before")
        if state is not None:
            fill(stage.objectives, under("objectives", state.tensors), "the saved objectives")
        self.accelerator.free_memory()
        wrapped = self.accelerator.prepare(stage)
        optimizer = make_optimizer(recipe.optimizer, stage)
        schedule = Schedule(recipe.schedule, lr=recipe.optimizer.lr, total=recipe.epochs * len(sampler))
        if state is not None:
            load_optimizer(optimizer, state)
            schedule.load(state.schedule)
            self._restore_random(state)
        return _Work(recipe, stage, wrapped, optimizer, schedule, sampler)

    def _train_epoch(self, work: _Work) -> None:
        position = self.position
        total = len(work.sampler)
        self.watch.epoch(work.recipe.name, position.epoch, work.recipe.epochs, position.batch, total)
        work.wrapped.train()
        waited = time.perf_counter()
        for parts, rows in prefetch(self._batches(work)):
            started = time.perf_counter()
            losses, norm, stop = self._step(work, parts, rows)
            position.batch, position.step, position.stage_step = (
                position.batch + 1,
                position.step + 1,
                position.stage_step + 1,
            )
            ended = time.perf_counter()
            captions = sum(len(batch) for batch, _ in parts) * self.processes
            entry = {
                "step": position.step,
                "stage": work.recipe.name,
                "epoch": position.epoch,
                "lr": work.optimizer.param_groups[0]["lr"],
                **losses,
                "gradient_norm": norm,
                "captions_per_second": captions / (ended - waited),
                "wait": (started - waited) / (ended - waited),
            }
            waited = ended
            self.watch.step(entry)
            if self.accelerator.is_main_process and position.step % self.recipe.log_every == 0:
                self.run.log(entry)
            if stop or (self.processes == 1 and self.stop.asked):
                self._save(work, None)
                where = f"stopped at step {position.step} and saved in {self.run.path}: go on with --resume"
                raise StoppedError(where, self.stop.signal or signal.SIGTERM)  # another process may have been asked
            if self.recipe.save_every and position.step % self.recipe.save_every == 0 and position.batch < total:
                self._save(work, None)

    def _batches(self, work: _Work) -> Iterator[tuple[list[tuple[Batch, float]], Index]]:
        """Yield this process's parts of each global batch of the epoch, with the share of words each part holds."""
        data, position = self.data.train, self.position
        epoch = position.epoch
        for rows in work.sampler.batches(epoch)[position.batch :]:
            words = data.word_counts[rows].sum()
            parts = []
            for part in split(rows, work.recipe.accumulate):
                mine = split(part, self.processes)[self.rank]
                parts.append((data.batch(mine, epoch), float(data.word_counts[part].sum() / words)))
            yield parts, rows

    def _step(self, work: _Work, parts: list[tuple[Batch, float]], rows: Index) -> tuple[dict[str, float], float, bool]:
        """Do one optimizer step; return its losses over all processes, the gradient norm, and whether to stop."""
        position, recipe, optimizer = self.position, work.recipe, work.optimizer
        moment = Moment(position.step, position.stage_step, position.epoch, position.batch / len(work.sampler))
        rate = work.schedule.rate(epoch=position.epoch, step=position.stage_step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
        totals: dict[str, Tensor] = {}
        for number, (batch, share) in enumerate(parts):
            last = number == len(parts) - 1
            with nullcontext() if last else self.accelerator.no_sync(work.wrapped):
                losses: dict[str, Tensor] = work.wrapped(batch.to(self.accelerator.device), moment)
                self.accelerator.backward(losses["loss"] * share)
            for name, value in losses.items():
                totals[name] = totals.get(name, torch.zeros((), device=value.device)) + value.detach().float() * share
        names = sorted(totals)
        report = torch.stack([torch.tensor(float(self.stop.asked), device=totals["loss"].device)])
        report = torch.cat([report, torch.stack([totals[name] for name in names])])
        if self.processes > 1:
            report = self.accelerator.reduce(report, "mean")
        stop, *values = report.tolist()
        shown = dict(zip(names, values, strict=True))
        norm = clip_gradients(recipe.clip, work.stage)
        if not all(math.isfinite(value) for value in (*values, norm)):
            raise self._not_finite(shown, norm, rows)
        optimizer.step()
        return shown, norm, stop > 0

    def _not_finite(self, losses: Mapping[str, float], norm: float, rows: Index) -> DeixisError:
        bad = [name for name, value in losses.items() if not math.isfinite(value)] or [f"gradient norm {norm}"]
        images = ", ".join(self.data.train.examples[row].id for row in rows[:3])
        last = self.run.pointer("last")
        kept = f"the last good checkpoint is {last}" if last is not None else "there was no checkpoint yet"
        position = self.position
        return DeixisError(
            f"{' and '.join(bad)} became NaN or infinite in stage {self.recipe.stages[position.stage].name}, epoch "
            f"{position.epoch}, batch {position.batch} (step {position.step}; images {images} …): stopped before the "
            f"weights changed; {kept}. Lower the learning rate or clip more"
        )

    def _validate(self, work: _Work) -> str | None:
        """Measure on the validation split; return the name of a new best checkpoint if there is one."""
        recipe, position = self.recipe.validation, self.position
        if self._validation is None:
            self._validation = build("validation", recipe.kind, {}, "validation", recipe=recipe, data=self.data)
        self.model.eval()
        began = time.perf_counter()
        with torch.no_grad():
            metrics, samples = self._validation(self.model, self.accelerator)
        if self.data.annotated is not None:
            metrics = metrics | measure_pointing(
                work.stage,
                self.data.annotated,
                self.accelerator,
                MEASURED,
                words=len(self.data.vocabulary),
                classes=len(self.data.classes),
            )
        self.model.train()
        if recipe.metric not in metrics:
            raise unknown_key(recipe.metric, metrics, "validation.metric", "metric")
        value = metrics[recipe.metric]
        work.schedule.observe(value)
        self.metrics = dict(metrics)
        better = position.best is None or value > position.best
        if better:
            position.best, position.best_step, position.stale = value, position.step, 0
        else:
            position.stale += 1
        entry = {"step": position.step, "stage": work.recipe.name, "epoch": position.epoch, "validation": metrics}
        self.watch.validation(entry, better=better)
        if not self.accelerator.is_main_process:
            return None
        self.run.log({**entry, "seconds": time.perf_counter() - began})
        self.run.log({"step": position.step, "epoch": position.epoch, "samples": samples}, SAMPLES)
        return self.run.save(f"best-{position.step:08d}", self._save_model) if better else None

    def _save_model(self, folder: Path) -> None:
        config = replace(self.config, metrics=self.metrics, step=self.position.step)
        save_model(folder, self.model, self.data.vocabulary, config)

    def _save(self, work: _Work, best: str | None) -> None:
        """Write the last checkpoint with everything needed to go on."""
        moments, groups = optimizer_tensors(work.optimizer)
        tensors = {**named("objectives", work.stage.objectives.state_dict()), **moments}
        for name, value in capture({"own": self.generator}).items():
            everyone = self.accelerator.gather(value.to(self.accelerator.device).unsqueeze(0)).cpu()
            tensors |= {f"random.{rank}.{name}": row for rank, row in enumerate(everyone)}
        if self.accelerator.is_main_process:
            state = RunState(self.position, work.schedule.state(), groups, self.processes, tensors)

            def write(folder: Path) -> None:
                self._save_model(folder)
                state.save(folder)

            name = self.run.save(f"step-{self.position.step:08d}", write)
            self.run.point(last=name, **({"best": best} if best is not None else {}))
            self.watch.saved(self.run)
        self.accelerator.wait_for_everyone()

    def _next_stage(self, work: _Work) -> None:
        """Go on to the next stage, from the best or the last weights of this one."""
        self._carried = {name: dict(objective.state_dict()) for name, objective in work.stage.objectives.items()}
        position = self.position
        following = self.recipe.stages[position.stage + 1 : self.recipe.planned.stop]
        best = self.run.pointer("best")
        if following and following[0].start == "best" and best is not None and position.best is not None:
            fill(self.model, load_weights(best), best)
        self.position = Position(stage=position.stage + 1, step=position.step, finished=not following)

    def _load_state(self) -> RunState | None:
        """Read the last checkpoint into the model; return the rest for the stage."""
        last = self.run.pointer("last")
        if last is None:  # stopped before its first checkpoint: begin again
            self._forget_after(-1)
            return None
        config = load_config(last)
        config.require(self.config.fingerprint, self.data.store.path)
        fill(self.model, load_weights(last, config), last)
        state = RunState.load(last)
        if state.processes != self.processes:
            raise DeixisError(
                f"the run was made with {state.processes} processes, now there are {self.processes}: an exact resume "
                f"needs {state.processes}"
            )
        self.position, self.metrics = state.position, dict(config.metrics)
        self._forget_after(self.position.step)
        return state

    def _forget_after(self, step: int) -> None:
        if self.accelerator.is_main_process:
            self.run.cut_back(step)
        self.accelerator.wait_for_everyone()

    def _restore_random(self, state: RunState) -> None:
        saved = under(f"random.{self.rank}", state.tensors)
        if not saved:
            raise BadFileError(f"the saved state has no random generators of process {self.rank}")
        restore(saved, {"own": self.generator})


def _set_attribute(model: nn.Module, name: str, value: object, stage: str) -> None:
    *path, last = name.split(".")
    target: Any = model
    for part in path:
        target = getattr(target, part, None)
    if target is None or not hasattr(target, last):
        raise BadRecipeError(f"stage {stage}: set.{name} names no attribute of the model")
    try:
        setattr(target, last, value)
    except ValueError as error:
        raise BadRecipeError(f"stage {stage}: set.{name}: {error}") from error
