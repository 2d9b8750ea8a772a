"""How the parts of ReIR's loss are added up, which decides how they weigh against each other.

Liu et al., CVPR 2021, equations 12, 14, 15 and 17 sum over the words, phrases and relations of a caption. The released
program takes the mean inside each caption. Either way a batch then gives the mean over its captions, so that a learning
rate means the same for every batch size.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from deixis.processes import global_count, masked_mean

Reduction = Literal["sum", "mean", "count"]
"""``sum``: over the parts of a caption (the paper); ``mean``: over the parts of a caption (the released program); both
are then averaged over captions. ``count``: over all parts of the batch at once, so each kind of loss is scaled by how
many parts it happens to have."""


def reduced(values: Tensor, caption: Tensor, captions: int, how: Reduction) -> Tensor:
    """Return one loss from the losses of parts, (M,), that belong to captions, (M,), of a batch of so many captions.

    >>> words, caption = torch.tensor([1.0, 2.0, 6.0]), torch.tensor([0, 0, 1])
    >>> [float(reduced(words, caption, 2, how)) for how in ("sum", "mean", "count")]
    [4.5, 3.75, 3.0]
    """
    if how == "count":
        return masked_mean(values, torch.ones_like(values, dtype=torch.bool))
    total = values.new_zeros(captions).index_add(0, caption, values)  # (C,)
    if how == "mean":
        total = total / torch.bincount(caption, minlength=captions).clamp(min=1)
    return total.sum() / global_count(torch.ones(captions, dtype=torch.bool, device=values.device))
