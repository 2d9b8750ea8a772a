"""Where a model looks, measured during training: objectives that know how say which annotated words they found.

Cyclical, section 4.4, compares the localizer, fed the ground-truth words, with the decoder's attention: GVD's attention
accuracy, the mean over object classes. The human boxes of the validation images are only measured with here; nothing is
learnt from them.
"""

from __future__ import annotations

import torch
from accelerate import Accelerator
from torch import Tensor

from deixis.data.batch import Batch
from deixis.data.sampler import split
from deixis.objectives.base import Context, Objective
from deixis.training.dataset import ExampleSet
from deixis.training.stage import Stage


@torch.no_grad()
def measure_pointing(
    stage: Stage, annotated: ExampleSet, accelerator: Accelerator, batch: int, *, words: int, classes: int = 0
) -> dict[str, float]:
    """Return the share of annotated words that each of the stage's objectives found, over all processes.

    ``NAME`` is the share of all words, ``NAME_by_class`` the mean over classes of each class's share: those of
    ``data.classes``, of which there are so many, or, where a recipe names none, every head word of a phrase.
    """
    measures = [one for one in stage.objectives.values() if isinstance(one, Objective)]
    rows = torch.arange(len(annotated)).numpy()
    mine = split(rows, accelerator.num_processes)[accelerator.process_index]
    counts: dict[str, Tensor] = {}
    for first in range(0, len(mine), batch):
        context = Context(stage.model, annotated.batch(mine[first : first + batch]).to(accelerator.device))
        kind = annotated_classes(context.batch, classes)  # (P,)
        for objective in measures:
            for name, found in objective.hits(context).items():
                both = torch.stack([found.float(), torch.ones_like(found, dtype=torch.float)])  # (2, P)
                table = torch.zeros(2, 1 + (classes or words), device=found.device)
                table.index_add_(1, 1 + kind, both)  # words of no class are in front
                counts[name] = counts.get(name, torch.zeros_like(table)) + table
    measured: dict[str, float] = {}
    for name in sorted(counts):
        table = accelerator.reduce(counts[name], "sum")
        found, every = table
        if every.sum() > 0:
            measured[name] = float(found.sum() / every.sum())
        seen = every[1:] > 0
        if seen.any():
            measured[f"{name}_by_class"] = float((found[1:][seen] / every[1:][seen]).mean())
    return measured


def annotated_classes(batch: Batch, classes: int) -> Tensor:
    """Return the class of each phrase with a box, (P,): its object class, -1 for none, or without classes its head."""
    phrases, boxes = batch.phrases, batch.phrase_boxes
    if phrases is None or boxes is None:
        return torch.zeros(0, dtype=torch.long, device=batch.words.device)
    kind = boxes.label if classes else batch.words[phrases.caption, phrases.head]
    return kind[boxes.mask.any(1)]
