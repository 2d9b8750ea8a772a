"""Training the `lite` extractor, second part: region features that speak the language of captions.

The network finds its own regions on every photo; what it pools from them is kept, and only the head that describes
regions goes on learning, from the captions of whole photos. Nobody says which region a word means:

* *multiple-instance*: a photo has a word as much as its best regions have it (Zhang et al., NIPS 2005, noisy-or's kin);
* *contrastive*: among the photos of a batch, the one whose caption has the word should have it most (InfoNCE; Gupta et
  al., InfoGround, ECCV 2020, equation 3, with the word's row of the head as its query);
* *what the teacher says*: COCO's classes, so that things stay known.

Which regions may answer for a word is a prior: words for COCO's kinds of things ("dog") ask for objectness, others
("grass", "shirt") for regionness. Without it parts answer for wholes, because a part often tells a word as surely as
the whole does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from deixis.regions.network.caption_words import is_thing_word
from deixis.regions.network.detector import LiteNetwork, RegionHead
from deixis.regions.network.select import Ranking, select
from deixis.regions.training.data import Corpus, nearest_classes

LOWEST = 0.02
WHOLE_THING, WHOLE_REGION = 0.05, 0.4


@dataclass(frozen=True, slots=True)
class WordStage:
    """Settings of the second part of training."""

    epochs: int = 6
    batch: int = 48
    rate: float = 5e-4
    decay: float = 0.05
    regions: int = 36
    prior: float = 1.0
    """Exponent of the prior: how much scores decide which regions answer for a word."""
    contrast: float = 0.5
    classes: float = 1.0
    dropout: float = 0.1
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Pooled:
    """What the network pools from its own regions of the photos, the whole photo last in each row."""

    inputs: tuple[NDArray[np.float16], ...]  # each (part of P, N, pooled), memory-mapped
    boxes: Tensor  # (P, N, 4) shares of the photo
    things: Tensor  # (P, N)
    regions: Tensor  # (P, N)
    classes: Tensor  # (P, N, 80) half precision
    ids: list[int]

    def take(self, rows: Tensor) -> Tensor:
        """The inputs of some photos, (B, N, pooled)."""
        wanted, first = rows.numpy(), 0
        taken = np.empty((len(wanted), *self.inputs[0].shape[1:]), dtype=np.float32)
        for part in self.inputs:
            mine = (wanted >= first) & (wanted < first + len(part))
            taken[mine] = part[wanted[mine] - first]
            first += len(part)
        return torch.from_numpy(taken)


@torch.inference_mode()
def pool_photos(network: LiteNetwork, corpus: Corpus, ids: list[int], path: Path, count: int, ranking: Ranking) -> None:
    """Run the network over photos and keep pooled inputs, boxes, scores and class targets in a folder."""
    path.mkdir(parents=True, exist_ok=True)
    network.eval()
    wide = network.regions.hidden.in_features
    inputs = np.lib.format.open_memmap(
        path / "inputs.npy", mode="w+", dtype=np.float16, shape=(len(ids), count + 1, wide)
    )
    rows: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    for at, photo in enumerate(ids):
        pixels = corpus.pixels(photo)[None].float().contiguous(memory_format=torch.channels_last)
        shape = corpus.shapes[photo]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            dense = network(pixels)
        kept = select(dense.scores[0], dense.boxes[0], shape, count, ranking)
        boxes = torch.cat([kept.boxes[:-1], kept.boxes[-1:].expand(count + 2 - len(kept.boxes), 4)])
        spare = (0, count + 1 - len(kept.boxes))
        things, regions = F.pad(kept.objectness[:-1], spare), F.pad(kept.regionness[:-1], spare)
        whole = torch.zeros(len(boxes), dtype=torch.long)
        inputs[at] = network.regions.pool(dense, boxes, whole).numpy().astype(np.float16)
        share = boxes / boxes.new_tensor([shape[0], shape[1], shape[0], shape[1]])
        teacher_boxes, teacher_probs = corpus.teacher(photo)
        classes = nearest_classes(share, teacher_boxes, teacher_probs).half()
        rows.append(
            (
                share,
                torch.cat([things, torch.tensor([WHOLE_THING])]),
                torch.cat([regions, torch.tensor([WHOLE_REGION])]),
                classes,
            )
        )
    inputs.flush()
    names = ("boxes", "things", "regions", "classes")
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        np.save(path / f"{name}.npy", torch.stack(values).numpy())
    np.save(path / "ids.npy", np.asarray(ids))


def read_pooled(paths: Sequence[Path]) -> Pooled:
    """Open what :func:`pool_photos` kept, in one or several parts."""
    names = ("boxes", "things", "regions", "classes")
    arrays = {
        name: torch.from_numpy(np.concatenate([np.load(path / f"{name}.npy") for path in paths])) for name in names
    }
    inputs = tuple(np.load(path / "inputs.npy", mmap_mode="r") for path in paths)
    return Pooled(inputs, **arrays, ids=[int(id) for path in paths for id in np.load(path / "ids.npy")])


def thing_gate(words: Sequence[str]) -> Tensor:
    """1 for words that ask for a whole thing, 0 for the others, (W,)."""
    return torch.tensor([float(is_thing_word(word)) for word in words])


def log_priors(things: Tensor, regions: Tensor, gate: Tensor) -> Tensor:
    """Log prior of each region for each word, (..., N) and (W,) -> (..., N, W)."""
    thing = things.sqrt().clamp(min=LOWEST).log()[..., None]
    region = torch.maximum(regions, things.sqrt() / 2).clamp(min=LOWEST).log()[..., None]
    return gate * thing + (1 - gate) * region


def pool_over_regions(logits: Tensor, priors: Tensor) -> Tensor:
    """A photo's logit of each word, (B, N, W) -> (B, W): the mean weighted by softmax(logit + log prior)."""
    share = torch.softmax(logits.detach() + priors, 1)
    return (share * logits).sum(1)


def contrast(pooled: Tensor, has: Tensor) -> Tensor:
    """InfoNCE over the photos of a batch, for every word of every photo; photos that share the word are no negatives.

    Args:
        pooled: (B, W) logits of the words.
        has: (B, W) whether a caption of the photo has the word.
    """
    negatives = torch.where(has, torch.full_like(pooled, -torch.inf), pooled)
    rest = torch.logsumexp(negatives, 0)  # (W,)
    wrong = F.softplus(rest - pooled)  # -log softmax of the photo against the photos without the word
    return wrong[has & torch.isfinite(rest)].sum() / len(pooled)


def word_losses(
    head: RegionHead, inputs: Tensor, pooled: Pooled, rows: Tensor, words: Tensor, gate: Tensor, stage: WordStage
) -> dict[str, Tensor]:
    """Named losses of a batch of photos: `inputs` (B, N, pooled), `words` (B, W) 0 to 1."""
    batch, count = inputs.shape[:2]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        feature = head.describe(F.dropout(inputs.flatten(0, 1), stage.dropout, head.training))
        feature = F.dropout(feature, stage.dropout, head.training)
        classes, logits = head.classes(feature).float(), head.words(feature).float()
    priors = stage.prior * log_priors(pooled.things[rows], pooled.regions[rows], gate)
    over = pool_over_regions(logits.view(batch, count, -1), priors)
    goal = pooled.classes[rows].float().clamp(0, 1).sqrt().flatten(0, 1)
    return {
        "words": F.binary_cross_entropy_with_logits(over, words, reduction="sum") / batch,
        "contrast": stage.contrast * contrast(over, words > 0),
        "classes": stage.classes * F.binary_cross_entropy_with_logits(classes, goal, reduction="sum") / (10 * batch),
    }


def train_words(
    head: RegionHead,
    pooled: Pooled,
    corpus: Corpus,
    stage: WordStage,
    report: Callable[[dict[str, float]], None] | None = None,
) -> None:
    """Teach the head in place; the mean losses of each epoch are reported."""
    torch.manual_seed(stage.seed)
    words = (corpus.words[pooled.ids].float() * 0.6).clamp(max=1.0)
    gate = thing_gate(corpus.word_names)
    optimizer = torch.optim.AdamW(head.parameters(), lr=stage.rate, weight_decay=stage.decay)
    steps = stage.epochs * (len(words) // stage.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, stage.rate, total_steps=max(steps, 2), pct_start=0.1)
    head.train()
    for epoch in range(stage.epochs):
        totals: dict[str, float] = {}
        order = torch.randperm(len(words))
        for first in range(0, len(words) - stage.batch + 1, stage.batch):
            rows = order[first : first + stage.batch].sort().values
            losses = word_losses(head, pooled.take(rows), pooled, rows, words[rows], gate, stage)
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(torch.stack(list(losses.values())).sum())
            torch.nn.utils.clip_grad_norm_(head.parameters(), 5.0)
            optimizer.step()
            schedule.step()
            for name, value in losses.items():
                totals[name] = totals.get(name, 0.0) + float(value.detach())
        if report is not None:
            means = {name: value * stage.batch / len(words) for name, value in totals.items()}
            report({"epoch": float(epoch + 1)} | means)
    head.eval()
