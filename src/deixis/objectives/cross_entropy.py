"""Cross entropy on the words of the captions, with scheduled sampling."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from deixis.captioning.model.captioner import ScheduledSampling
from deixis.objectives.base import Context, Objective, masked_mean


@dataclass(frozen=True, slots=True)
class CrossEntropyOptions:
    """Scheduled sampling rises by ``sampling_rise`` every ``sampling_every`` epochs up to ``sampling_most``.

    POS-SCAN's captioner: .05 every 5 epochs up to .25; 0 switches it off.
    """

    sampling_rise: float = 0.0
    sampling_every: int = 5
    sampling_most: float = 0.25
    smoothing: float = 0.0
    """Label smoothing."""


class CrossEntropy(Objective):
    """-log p of each word given the words before it (POS-SCAN eq. 15's first term, Distributed eq. 6).

    With K branches it is taken on each branch's output and averaged, so that K does not change the size of the loss.
    The mean is over the words of the batch, end tokens included.

    Zhou et al., *More Grounded Image Captioning by Distilling Image-Text Matching Model*, CVPR 2020, equation 15, first
    term; Chen et al., *Distributed Attention for Grounded Image Captioning*, ACM MM 2021, equation 6. Scheduled
    sampling: Bengio et al., NeurIPS 2015.

    >>> objective = CrossEntropy()
    >>> losses = objective(Context(captioner, batch))
    >>> losses["cross_entropy"].backward()
    """

    def __init__(self, options: CrossEntropyOptions | None = None) -> None:
        super().__init__()
        self.options = options or CrossEntropyOptions()

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``cross_entropy``."""
        if context.feed is None:
            context.feed = self.sampling(context)
        first = context.first()
        losses = first.cross_entropy(context.batch.words, smoothing=self.options.smoothing).mean(0)  # (C, T)
        return {"cross_entropy": masked_mean(losses, first.mask)}

    def sampling(self, context: Context) -> ScheduledSampling | None:
        """The scheduled sampling of this moment, or None."""
        options = self.options
        if not self.training or options.sampling_rise <= 0:
            return None
        rises = int(context.epoch // options.sampling_every)
        probability = min(rises * options.sampling_rise, options.sampling_most)
        return ScheduledSampling(probability, context.generator) if probability > 0 else None
