"""Teaching a namer what captions call things: heads on tokens that were computed once, so an epoch takes a minute.

The boxes, the maps and DINOv2 stay as they are. What learns is how a region's token and its own feature together become
words of captions (multiple-instance and by contrast, :mod:`deixis.regions.training.words`) and COCO's 80 categories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.regions.network.detector import LiteShape
from deixis.regions.network.trunks.dinov2 import WIDTH
from deixis.regions.store.reader import RegionStore
from deixis.regions.training.data import Corpus
from deixis.regions.training.learner import classes_of, quicker
from deixis.regions.training.state import load_state, save_state
from deixis.regions.training.words import (
    WHOLE_REGION,
    WHOLE_THING,
    contrast,
    log_priors,
    pool_over_regions,
    thing_gate,
    word_goal,
)

Told = Callable[[Mapping[str, float]], None]


def _weights() -> dict[str, float]:
    return {"words": 0.15, "contrast": 0.1, "classes": 1.0}


@dataclass(frozen=True, slots=True)
class NamesSchedule:
    """How long and how fast the heads learn."""

    epochs: int = 6
    batch: int = 48
    regions: int = 36
    rate: float = 1e-3
    decay: float = 0.05
    warm_up: int = 100
    dropout: float = 0.1
    average: float = 0.998
    clip: float = 10.0
    save_every: int = 200
    precision: str = "float32"
    seed: int = 1
    weights: Mapping[str, float] = field(default_factory=_weights)


@dataclass(frozen=True, slots=True)
class Looked:
    """The regions of B photos as an untaught extractor gives them; the whole photo is the last of each."""

    features: Tensor  # (B, N, 384 + feature) the token, then the extractor's own
    mask: Tensor  # (B, N)
    things: Tensor  # (B, N)
    regions: Tensor  # (B, N)
    boxes: Tensor  # (B, N, 4) as shares of the photo


class NamesLearner(nn.Module):
    """The heads while they learn."""

    gate: Tensor  # (W,)

    def __init__(self, shape: LiteShape, words: Sequence[str], dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(WIDTH + shape.feature, shape.namer_hidden)
        self.learned = nn.Linear(shape.namer_hidden, shape.learned)
        self.words = nn.Linear(shape.learned, shape.words)
        self.classes = nn.Linear(shape.learned, shape.classes)
        self.dropout = dropout
        for head in (self.words, self.classes):
            nn.init.constant_(head.bias, -4.0)
            nn.init.normal_(head.weight, std=0.01)
        self.register_buffer("gate", thing_gate(words), persistent=False)

    def forward(self, looked: Looked, said: Tensor, classes: Tensor, known: Tensor, half: bool) -> dict[str, Tensor]:
        """Name the losses of a batch.

        Args:
            looked: The regions of B photos.
            said: How many captions of each photo have each word, (B, W).
            classes: How surely each region is each of COCO's categories, (B, N, 80).
            known: Whether that is certain, one way or the other, (B, N).
            half: Compute in bfloat16.
        """
        with quicker(half):
            tokens, own = looked.features[..., :WIDTH], looked.features[..., WIDTH:]
            given = F.dropout(torch.cat([own, tokens], -1), self.dropout, self.training)
            learned = F.relu(self.learned(F.relu(self.hidden(given))))
            words, named = self.words(learned).float(), self.classes(learned).float()  # (B, N, W), (B, N, 80)
        priors = log_priors(looked.things, looked.regions, self.gate)
        pooled = pool_over_regions(words, priors.masked_fill(~looked.mask.unsqueeze(-1), -torch.inf))
        goal = word_goal(said)
        wrong = F.binary_cross_entropy_with_logits(named, classes.sqrt(), reduction="none").sum(-1)
        return {
            "words": F.binary_cross_entropy_with_logits(pooled, goal, reduction="sum") / len(said),
            "contrast": contrast(pooled, goal > 0),
            "classes": (wrong * known * looked.mask).sum() / (10 * len(said)),
        }


class Looks:
    """What an untaught extractor saw in the photos of a corpus, read from stores."""

    def __init__(self, corpus: Corpus, places: Sequence[tuple[RegionStore, str]], regions: int) -> None:
        """Take the store and the id of every photo of the corpus; one that could not be read is left out."""
        self.corpus, self.regions, self._places = corpus, regions, places
        self.rows = [at for at, (store, id) in enumerate(places) if id in store]

    def load(self, rows: Sequence[int]) -> tuple[Looked, Tensor, Tensor, Tensor]:
        """Read photos: their regions, words, and what is known about the categories of their regions."""
        read = [self._read(at) for at in rows]
        most = max(len(boxes) for boxes, *_ in read)
        padded = [[_pad(value, most) for value in photo] for photo in read]
        boxes, features, things, regions, classes, known = (torch.stack(column) for column in zip(*padded, strict=True))
        mask = torch.arange(most) < torch.tensor([len(photo[0]) for photo in read]).unsqueeze(1)
        return Looked(features, mask, things, regions, boxes), self.corpus.said(rows), classes, known

    def _read(self, at: int) -> tuple[Tensor, ...]:
        store, id = self._places[at]
        seen = store.get(id, ("boxes", "features", "objectness", "regionness")).top(self.regions)
        assert seen.regionness is not None
        boxes = seen.boxes.float() / torch.tensor([*seen.size, *seen.size])
        things, regions = seen.objectness.float().clone(), seen.regionness.float().clone()
        things[-1], regions[-1] = WHOLE_THING, WHOLE_REGION
        thing, scores, classes = self.corpus.things(at)
        return boxes, seen.features.float(), things, regions, *classes_of(boxes, thing, scores, classes)


def learn_names(
    looks: Looks, shape: LiteShape, schedule: NamesSchedule, run: Path, told: Told, stop_after: int | None = None
) -> dict[str, Tensor]:
    """Train (or go on training) the heads and return the mean of their weights; a kill costs ``save_every`` steps."""
    torch.manual_seed(schedule.seed)
    learner = NamesLearner(shape, looks.corpus.word_names, schedule.dropout)
    optimizer = torch.optim.AdamW(learner.parameters(), lr=schedule.rate, weight_decay=schedule.decay)
    average = {name: value.detach().clone() for name, value in learner.state_dict().items()}
    start = load_state(run, asdict(schedule), learner, optimizer, average)
    per_epoch = len(looks.rows) // schedule.batch
    steps = per_epoch * schedule.epochs
    last = min(steps, stop_after or steps)
    for step in range(start, last):
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate * min((step + 1) / schedule.warm_up, 0.02 + 0.98 * (1 - step / steps))
        torch.manual_seed(schedule.seed * 1_000_003 + step)  # dropout depends on nothing else
        losses = learner(*looks.load(_rows(looks, schedule, step, per_epoch)), schedule.precision == "bf16")
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(torch.stack([schedule.weights[name] * value for name, value in losses.items()]).sum())
        torch.nn.utils.clip_grad_norm_(learner.parameters(), schedule.clip)
        optimizer.step()
        keep = min(schedule.average, (step + 1) / (step + 20))
        with torch.no_grad():
            for name, value in learner.state_dict().items():
                average[name].lerp_(value, 1 - keep)
        if (step + 1) % 25 == 0:
            told({"step": step + 1, "steps": steps} | {name: float(value.detach()) for name, value in losses.items()})
        if (step + 1) % schedule.save_every == 0 or step + 1 == last:
            save_state(run, step + 1, asdict(schedule), learner, optimizer, average)
    return average


def _rows(looks: Looks, schedule: NamesSchedule, step: int, per_epoch: int) -> list[int]:
    """The photos of a step: every epoch takes all in an order of its own."""
    epoch, at = divmod(step, per_epoch)
    order = torch.randperm(len(looks.rows), generator=torch.Generator().manual_seed(schedule.seed * 1009 + epoch))
    return [looks.rows[row] for row in order[at * schedule.batch : (at + 1) * schedule.batch].tolist()]


def _pad(value: Tensor, most: int) -> Tensor:
    """Add rows of zeros, (n, ...) -> (most, ...)."""
    return torch.cat([value, value.new_zeros(most - len(value), *value.shape[1:])])
