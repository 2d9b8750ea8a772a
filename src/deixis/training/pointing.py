"""Where a model looks, measured during training: objectives that know how say which annotated words they found.

Cyclical, section 4.4, compares the localizer, fed the ground-truth words, with the decoder's attention. The human boxes
of the validation images are only measured with here; nothing is learnt from them.
"""

from __future__ import annotations

import torch
from accelerate import Accelerator
from torch import Tensor

from deixis.data.sampler import split
from deixis.objectives.base import Context, Objective
from deixis.training.dataset import ExampleSet
from deixis.training.stage import Stage


@torch.no_grad()
def measure_pointing(stage: Stage, annotated: ExampleSet, accelerator: Accelerator, batch: int) -> dict[str, float]:
    """Return the share of annotated words that each of the stage's objectives found, over all processes."""
    measures = [one for one in stage.objectives.values() if isinstance(one, Objective)]
    rows = torch.arange(len(annotated)).numpy()
    mine = split(rows, accelerator.num_processes)[accelerator.process_index]
    counts: dict[str, Tensor] = {}
    for first in range(0, len(mine), batch):
        context = Context(stage.model, annotated.batch(mine[first : first + batch]).to(accelerator.device))
        for objective in measures:
            for name, found in objective.hits(context).items():
                pair = torch.stack([found.float().sum(), torch.tensor(float(len(found)), device=found.device)])
                counts[name] = counts.get(name, torch.zeros_like(pair)) + pair
    summed = {name: accelerator.reduce(counts[name], "sum") for name in sorted(counts)}
    return {name: float(found / words) for name, (found, words) in summed.items() if words > 0}
