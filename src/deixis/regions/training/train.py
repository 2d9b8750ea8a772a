"""The training loop of the `lite` extractor.

Several processes with one thread each share the work: on a busy CPU that is far quicker than one process with several
threads. Every step draws its photos from its own number, so a run that is killed goes on as if nothing had happened.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import nn

from deixis.atomic import write_text
from deixis.errors import BadRecipeError
from deixis.regions.network.detector import LiteShape
from deixis.regions.network.select import Ranking
from deixis.regions.network.trunks.dinov2 import DinoV2
from deixis.regions.network.trunks.published import dinov2
from deixis.regions.network.trunks.trunk import publish
from deixis.regions.training.data import Corpus
from deixis.regions.training.learner import Learner
from deixis.regions.training.state import kept_settings, load_state, save_state


def _weights() -> dict[str, float]:
    return {
        "thing_score": 1.0,
        "thing_box": 1.0,
        "thing_offset": 0.25,
        "region_score": 1.0,
        "region_box": 1.0,
        "region_offset": 0.25,
        "classes": 1.0,
        "words": 0.15,
        "contrast": 0.1,
        "whole": 0.1,
        "teach_map": 1.0,
        "teach_region": 1.0,
        "teach_whole": 0.5,
    }


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast the extractor learns."""

    steps: int = 9000
    draws: Mapping[str, int] = field(default_factory=lambda: {"regions": 2, "captions": 3, "boxes": 1})
    """Photos of each kind in a batch of one process: with the segmenter's boxes, with captions, with neither."""
    pixels: tuple[int, ...] = (62_000, 82_000, 106_000)
    """Sizes of the input; each batch has one of them."""
    smallest_crop: float = 0.6
    rate: float = 8e-4
    trunk_rate: float = 1e-4
    decay: float = 0.02
    warm_up: int = 150
    cool_down: float = 0.3
    """The rate stays level but for this last share of the steps, over which it falls to 2 %."""
    frozen_steps: int = 200
    """Before the trunk joins in."""
    teach_every: int = 2
    """The dense teacher looks at every so-many-th batch; 0 for never."""
    precision: Literal["float32", "bf16"] = "float32"
    """bf16 is twice as quick on processors that compute in it (AMX, AVX512-BF16) and half as quick on others."""
    clip: float = 10.0
    average: float = 0.998
    save_every: int = 100
    seed: int = 1
    weights: Mapping[str, float] = field(default_factory=_weights)

    def rate_at(self, step: int) -> float:
        """Linear warm-up, a level stretch, then straight down to 2 %."""
        if step < self.warm_up:
            return (step + 1) / self.warm_up
        left = (self.steps - step) / max(1.0, self.cool_down * self.steps)
        return 0.02 + 0.98 * min(1.0, left)


def _same_until_now(schedule: Schedule, kept: Mapping[str, Any] | None, step: int) -> None:
    """Let a run be made longer or shorter only while its rate is still level, so that it equals one begun so."""
    before = schedule.steps if kept is None else int(kept["steps"])
    level = (1 - schedule.cool_down) * min(before, schedule.steps)
    if before != schedule.steps and step > level:
        raise BadRecipeError(
            f"the run was begun for {before} steps and its rate has been falling since step {level:.0f}: "
            f"it cannot be made {schedule.steps} steps long at step {step}"
        )


def optimizer_for(learner: Learner, schedule: Schedule) -> torch.optim.AdamW:
    """AdamW with a smaller rate for what the trunk has learnt already."""
    trunk = list(learner.network.trunk.parameters())
    known = {id(p) for p in trunk}
    rest = [p for p in learner.parameters() if id(p) not in known]
    groups = [{"params": trunk, "base": schedule.trunk_rate}, {"params": rest, "base": schedule.rate}]
    return torch.optim.AdamW(groups, lr=schedule.rate, weight_decay=schedule.decay, betas=(0.9, 0.99))


def _share_gradients(parameters: list[nn.Parameter], world: int) -> None:
    """Average the gradients over the processes, in one message."""
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    flat = torch.cat([p.grad.reshape(-1) for p in parameters if p.grad is not None])
    dist.all_reduce(flat)
    flat /= world
    at = 0
    for parameter in parameters:
        assert parameter.grad is not None
        parameter.grad.copy_(flat[at : at + parameter.numel()].view_as(parameter))
        at += parameter.numel()


def train(
    corpus: Corpus,
    shape: LiteShape,
    ranking: Ranking,
    schedule: Schedule,
    weights: Path,
    run: Path,
    rank: int = 0,
    world: int = 1,
    report: Report | None = None,
    stop_after: int | None = None,
) -> Path:
    """Train (or go on training) and return the file of averaged weights; `weights` holds the published ones."""
    torch.manual_seed(schedule.seed)
    learner = Learner(shape, corpus.word_names, ranking, schedule.precision == "bf16")
    publish(learner.network.trunk, shape.trunk, weights)
    learner = learner.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    teacher = dinov2(weights).eval().requires_grad_(False) if schedule.teach_every else None
    optimizer = optimizer_for(learner, schedule)
    average = {name: value.detach().clone() for name, value in learner.state_dict().items()}
    start = load_state(run, asdict(schedule), learner, optimizer, average, may_change=("steps",))
    _same_until_now(schedule, kept_settings(run), start)
    if report is not None and rank == 0:
        report.go_on(start)
    began, seen = time.monotonic(), 0
    totals: dict[str, list[float]] = {}
    last = min(schedule.steps, stop_after or schedule.steps)
    learner.train()
    for step in range(start, last):
        learner.network.trunk.let_learn(step >= schedule.frozen_steps)
        for group in optimizer.param_groups:
            group["lr"] = group["base"] * schedule.rate_at(step)
        losses = _losses(learner, corpus, schedule, teacher, step, rank)
        total = torch.stack([schedule.weights[name] * value for name, value in losses.items()]).sum()
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(total)
        parameters = [p for p in learner.parameters() if p.requires_grad]
        if world > 1:
            _share_gradients(parameters, world)
        torch.nn.utils.clip_grad_norm_(parameters, schedule.clip)
        optimizer.step()
        keep = min(schedule.average, (step + 1) / (step + 20))
        with torch.no_grad():
            for name, value in learner.state_dict().items():
                average[name].lerp_(value, 1 - keep)
        seen += sum(schedule.draws.values()) * world
        for name, value in losses.items():
            totals.setdefault(name, []).append(float(value.detach()))
        if rank == 0 and (step + 1) % 25 == 0:
            if report is not None:
                speed = {"step": float(step + 1), "photos_per_second": seen / (time.monotonic() - began)}
                report(speed | {name: sum(values) / len(values) for name, values in totals.items()})
            totals = {}
        if rank == 0 and ((step + 1) % schedule.save_every == 0 or step + 1 == last):
            save_state(run, step + 1, asdict(schedule), learner, optimizer, average)
    return run / "average.safetensors"


def _losses(
    learner: Learner, corpus: Corpus, schedule: Schedule, teacher: DinoV2 | None, step: int, rank: int
) -> dict[str, torch.Tensor]:
    """The losses of one step's photos, which depend on nothing but the seed, the step and the process."""
    draw = torch.Generator().manual_seed((schedule.seed * 1_000_003 + step) * 64 + rank)
    rows = corpus.draw(schedule.draws, draw)
    pixels = schedule.pixels[int(torch.randint(len(schedule.pixels), (1,), generator=draw))]
    photos = corpus.load(rows, corpus.shape_of(rows, pixels), schedule.smallest_crop, draw)
    asked = schedule.teach_every and step % schedule.teach_every == 0
    losses: dict[str, torch.Tensor] = learner(photos, teacher if asked else None)
    return losses


@dataclass(frozen=True, slots=True)
class Report:
    """A file of losses, one line of JSON each; steps that a killed run did after its last checkpoint are there once."""

    path: Path

    def go_on(self, step: int) -> None:
        """Drop what was said of steps that are about to be done again, and a line that was cut short."""
        if self.path.is_file():
            lines = self.path.read_text().splitlines(keepends=True)
            kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
            if kept != lines:
                write_text(self.path, "".join(kept))

    def __call__(self, values: Mapping[str, float]) -> None:
        """Append the losses of a step."""
        with self.path.open("a") as lines:
            lines.write(json.dumps({name: round(value, 4) for name, value in values.items()}) + "\n")
