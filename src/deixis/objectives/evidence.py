"""Evidence for words by contrast: a word is in the images whose captions say it, and not in the others of the batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.data.batch import Batch
from deixis.grounding.lite.model import LiteGrounder, content
from deixis.objectives.base import Context, Objective


@dataclass(frozen=True, slots=True)
class EvidenceOptions:
    """How much is contrasted in a step."""

    words: int = 256
    """Different words of the batch, drawn at random where there are more."""
    among_words: float = 0.5
    """Weight of the second half of the loss: the image's words against the batch's other words."""
    agreement: int = 3
    """A word counts in full for an image when so many of its captions say it, in proportion below."""


class Evidence(Objective):
    """InfoNCE both ways between words and images, where an image may have many words and a word many images.

    For each word and image that belong together: the image against those whose captions do not say the word, and the
    word against those that the image's captions do not say. With several processes each contrasts its own images.

    Ours, for ``lite``; the loss is that of van den Oord et al., *Representation Learning with Contrastive Predictive
    Coding*, 2018, equation 4. Use together with ``teaching``.

    >>> objective = Evidence()
    >>> losses = objective(Context(grounder, batch))
    >>> losses["evidence"].backward()
    """

    trains = LiteGrounder
    needs = frozenset({"tags"})

    def __init__(self, options: EvidenceOptions | None = None) -> None:
        super().__init__()
        self.options = options or EvidenceOptions()

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``evidence``."""
        model = context.trained(LiteGrounder)
        words, said = words_of_images(context.batch, model.lemma)
        if len(words) > self.options.words:
            kept = torch.randperm(len(words), generator=context.generator)[: self.options.words].to(words.device)
            words, said = words[kept], said[kept]
        weights = said.clamp(max=self.options.agreement) / self.options.agreement  # (M, B)
        scores = model.presence(words, context.batch.regions)  # (M, B)
        among_images = contrast(scores, weights, 1)
        among_words = contrast(scores + model.evidence_bias(words), weights, 0)
        return {"evidence": among_images + self.options.among_words * among_words, "_evidence_images": among_images}


def words_of_images(batch: Batch, lemma: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lemmas of nouns and adjectives, (M,), and how many captions of each image say them, (M, B)."""
    caption, place = content(batch).nonzero(as_tuple=True)
    words, number = torch.unique(lemma[batch.words[caption, place]], return_inverse=True)
    in_caption = torch.zeros(len(words), len(batch), device=words.device)
    in_caption[number, caption] = 1.0
    said = torch.zeros(len(words), len(batch.regions), device=words.device)
    return words, said.index_add(1, batch.image_of, in_caption)


def contrast(scores: Tensor, weights: Tensor, axis: int) -> Tensor:
    """Return the weighted mean over pairs with weight of -log of the pair's share among itself and pairs without."""
    positive = weights > 0
    others = torch.logsumexp(scores.masked_fill(positive, -1e4), axis, keepdim=True)
    losses = F.softplus(others - scores) * weights
    return losses.sum() / weights.sum().clamp(min=1e-6)
