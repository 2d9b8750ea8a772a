"""Ranking losses over a table of image-caption scores, with hardest or summed negatives in the batch.

POS-SCAN (Zhou et al., CVPR 2020), equation 7; SCAN offers the sum over all negatives too. Captions of one image are
never negatives of each other, nor is an image a negative of any of its captions.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Negatives = Literal["hardest", "sum"]


def triplet_loss(scores: Tensor, image_of: Tensor, *, margin: float = 0.2, negatives: Negatives = "hardest") -> Tensor:
    """Return the hinge loss of each caption, (C,), from the scores of every image with every caption, (B, C).

    For caption c of image b: [margin - S(b, c) + S(b, c')]+ over captions c' of other images, plus
    [margin - S(b, c) + S(b', c)]+ over other images b'; the hardest of each, or all of them summed.
    """
    images, captions = scores.shape
    own = torch.arange(images, device=scores.device).unsqueeze(1) == image_of.unsqueeze(0)  # (B, C)
    true = scores[image_of, torch.arange(captions, device=scores.device)]  # (C,)
    other_images = (margin - true + scores).clamp(min=0).masked_fill(own, 0.0)  # (B, C)
    # row c: the image of caption c against every caption that is not its own
    other_captions = (margin - true.unsqueeze(1) + scores[image_of]).clamp(min=0).masked_fill(own[image_of], 0.0)
    if negatives == "sum":
        return other_images.sum(0) + other_captions.sum(1)
    return other_images.amax(0) + other_captions.amax(1)
