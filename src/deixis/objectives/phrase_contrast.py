"""MAF's loss: a caption's phrases must fit its own image better than the other images of the batch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.grounding.maf import Maf
from deixis.objectives.base import Context, Objective
from deixis.processes import masked_mean


class PhraseContrast(Objective):
    """Cross entropy over images of a caption's similarity, the mean over its phrases of their best region.

    Wang et al., EMNLP 2020. Captions without phrases are left out. With several processes each contrasts its own
    images.

    Wang et al., *MAF: Multimodal Alignment Framework for Weakly-Supervised Phrase Grounding*, EMNLP 2020.

    >>> objective = PhraseContrast()
    >>> losses = objective(Context(grounder, batch))
    >>> losses["phrase_contrast"].backward()
    """

    trains = Maf
    needs = frozenset({"phrases"})

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``phrase_contrast`` and how often the own image fits best."""
        model, batch = context.trained(Maf), context.batch
        if batch.phrases is None or not len(batch.phrases.head):
            return {}
        scores = model.caption_similarities(batch)  # (C, B)
        counts = torch.bincount(batch.phrases.caption, minlength=len(batch)) > 0
        losses = F.cross_entropy(scores, batch.image_of, reduction="none")
        first = (scores.argmax(1) == batch.image_of).float()
        return {"phrase_contrast": masked_mean(losses, counts), "_own_image_first": masked_mean(first, counts)}
