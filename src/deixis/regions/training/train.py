"""Training the `lite` extractor, first part: proposals and descriptions, with the trunk fine-tuned.

Two processes with one thread each share the work: on a busy CPU that is far quicker than one process with two threads.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.regions.network.detector import Dense, LiteNetwork, LiteShape
from deixis.regions.network.proposals import cells_of
from deixis.regions.network.trunk import freeze_early, imagenet_trunk
from deixis.regions.training.data import Corpus, Photos, endless
from deixis.regions.training.state import load_state, save_state
from deixis.regions.training.targets import proposal_losses, targets_of

LOSS_WEIGHTS = {
    "thing_score": 1.0,
    "thing_box": 1.0,
    "thing_offset": 0.25,
    "region_score": 1.0,
    "region_box": 1.0,
    "region_offset": 0.25,
    "classes": 1.0,
    "words": 0.1,
    "whole": 0.1,
}


@dataclass(frozen=True, slots=True)
class ProposalStage:
    """Settings of the first part of training."""

    steps: int = 3600
    batch: int = 6
    rate: float = 8e-4
    trunk_rate: float = 2e-4
    decay: float = 0.02
    warm_up: int = 150
    frozen_blocks: int = 5
    frozen_steps: int = 150
    clip: float = 10.0
    average: float = 0.998
    save_every: int = 250
    seed: int = 1


class Learner(nn.Module):
    """The network and what only training needs: a head that reads words off the whole photo."""

    def __init__(self, shape: LiteShape) -> None:
        super().__init__()
        self.network = LiteNetwork(shape)
        self.whole_words = nn.Linear(shape.feature, shape.words)
        nn.init.constant_(self.whole_words.bias, -4.0)

    def losses(self, photos: Photos) -> dict[str, Tensor]:
        """All named losses of a batch."""
        width, height = photos.shape
        cells = cells_of(height, width)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            dense = self.network(photos.pixels)
        targets = targets_of(cells, photos.shape, photos.sizes, photos.mirrored, photos.things, photos.regions)
        losses = proposal_losses(dense.scores, dense.boxes, targets, cells)
        return losses | self._describing_losses(photos, dense)

    def _describing_losses(self, photos: Photos, dense: Dense) -> dict[str, Tensor]:
        width, height = photos.shape
        boxes = photos.boxes * photos.boxes.new_tensor([width, height, width, height])
        head = self.network.regions
        with torch.autocast("cpu", dtype=torch.bfloat16):
            feature = head.describe(head.pool(dense, boxes, photos.image_of))
            classes, words = head.classes(feature).float(), head.words(feature).float()
            whole = self.whole_words(self.network.describe_whole(dense)).float()
        batch = len(photos.words)
        class_loss = F.binary_cross_entropy_with_logits(classes, photos.classes.clamp(0, 1).sqrt(), reduction="sum")
        pooled = pool_words(words, photos.image_of, photos.priors, batch)
        return {
            "classes": class_loss / (10 * batch),
            "words": F.binary_cross_entropy_with_logits(pooled, photos.words, reduction="sum") / batch,
            "whole": F.binary_cross_entropy_with_logits(whole, photos.words, reduction="sum") / batch,
        }


def pool_words(logits: Tensor, image_of: Tensor, priors: Tensor, batch: int) -> Tensor:
    """A photo's logit of each word: the mean over its regions, weighted by softmax(logit) x prior, (B, W).

    The prior, a region's objectness, makes whole objects rather than their parts answer for a word.
    """
    rows = []
    for at in range(batch):
        mine = logits[image_of == at]  # (N, W)
        share = torch.softmax(mine.detach() + priors[image_of == at, None].log(), 0)
        rows.append((share * mine).sum(0))
    return torch.stack(rows)


def rate_at(step: int, stage: ProposalStage) -> float:
    """Linear warm-up, then half a cosine down to 2 % of the rate."""
    if step < stage.warm_up:
        return (step + 1) / stage.warm_up
    done = (step - stage.warm_up) / max(1, stage.steps - stage.warm_up)
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def optimizer_for(learner: Learner, stage: ProposalStage) -> torch.optim.AdamW:
    """AdamW with a smaller rate for what ImageNet has taught already."""
    trunk = [p for p in learner.network.trunk.parameters() if p.requires_grad]
    known = {id(p) for p in learner.network.trunk.parameters()}
    rest = [p for p in learner.parameters() if id(p) not in known and p.requires_grad]
    groups = [{"params": trunk, "base": stage.trunk_rate}, {"params": rest, "base": stage.rate}]
    return torch.optim.AdamW(groups, lr=stage.rate, weight_decay=stage.decay, betas=(0.9, 0.99))


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


def train_proposals(
    corpus: Corpus,
    shape: LiteShape,
    stage: ProposalStage,
    run: Path,
    rank: int = 0,
    world: int = 1,
    report: Callable[[dict[str, float]], None] | None = None,
    stop_after: int | None = None,
) -> Path:
    """Train (or go on training) and return the file of averaged weights."""
    torch.manual_seed(stage.seed)
    learner = Learner(shape)
    learner.network.trunk = imagenet_trunk()
    freeze_early(learner.network.trunk, stage.frozen_blocks)
    learner = learner.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = optimizer_for(learner, stage)
    average = {name: value.detach().clone() for name, value in learner.state_dict().items()}
    start = load_state(run, asdict(stage), learner, optimizer, average)
    parameters = [p for p in learner.parameters() if p.requires_grad]
    began, seen = time.monotonic(), 0
    totals: dict[str, float] = {}
    last = min(stage.steps, stop_after or stage.steps)
    learner.train()
    for step, rows in endless(corpus, stage.batch, stage.seed, rank, world, start):
        if step >= last:
            break
        freeze_early(learner.network.trunk, stage.frozen_blocks if step >= stage.frozen_steps else 99)
        for group in optimizer.param_groups:
            group["lr"] = group["base"] * rate_at(step, stage)
        draw = torch.Generator().manual_seed((stage.seed * 1_000_003 + step) * 64 + rank)
        losses = learner.losses(corpus.load(rows, draw))
        total = torch.stack([LOSS_WEIGHTS[name] * value for name, value in losses.items()]).sum()
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(total)
        if world > 1:
            _share_gradients(parameters, world)
        torch.nn.utils.clip_grad_norm_(parameters, stage.clip)
        optimizer.step()
        keep = min(stage.average, (step + 1) / (step + 20))
        with torch.no_grad():
            for name, value in learner.state_dict().items():
                average[name].lerp_(value, 1 - keep)
        seen += len(rows) * world
        for name, value in losses.items():
            totals[name] = totals.get(name, 0.0) + float(value.detach())
        if rank == 0 and (step + 1) % 25 == 0:
            if report is not None:
                speed = {"step": float(step + 1), "photos_per_second": seen / (time.monotonic() - began)}
                report(speed | {name: value / 25 for name, value in totals.items()})
            totals = {}
        if rank == 0 and ((step + 1) % stage.save_every == 0 or step + 1 == last):
            save_state(run, step + 1, asdict(stage), learner, optimizer, average)
    return run / "average.safetensors"


def report_to(path: Path) -> Callable[[dict[str, float]], None]:
    """Append each report as a line of JSON."""

    def write(values: dict[str, float]) -> None:
        with path.open("a") as lines:
            lines.write(json.dumps({name: round(value, 4) for name, value in values.items()}) + "\n")

    return write
