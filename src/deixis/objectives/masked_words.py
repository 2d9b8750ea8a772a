"""Guessing hidden words of captions, the training of the masked language model behind word features and negatives."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.grounding.base import real_words
from deixis.objectives.base import Context, Objective
from deixis.processes import masked_mean
from deixis.text.masked_model import MaskedLanguageModel
from deixis.text.vocabulary import UNKNOWN


@dataclass(frozen=True, slots=True)
class MaskingOptions:
    """BERT's (Devlin et al., NAACL 2019, section 3.1): 15 % of the words are asked for; of these 80 % are hidden, 10 %
    replaced by a random word and 10 % left as they are, so that the model also knows what to say of a visible word."""

    share: float = 0.15
    hidden: float = 0.8
    replaced: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or min(self.hidden, self.replaced) < 0 or self.hidden + self.replaced > 1:
            raise ValueError("share should lie in (0, 1], hidden and replaced in [0, 1] and sum to at most 1")


class MaskedWords(Objective):
    """Cross entropy of the words asked for; every caption with a known word is asked at least one.

    Devlin et al., *BERT*, NAACL 2019, section 3.1, task 1.

    >>> objective = MaskedWords()
    >>> losses = objective(Context(language_model, batch))
    >>> losses["masked_words"].backward()
    """

    trains = MaskedLanguageModel

    def __init__(self, options: MaskingOptions | None = None) -> None:
        super().__init__()
        self.options = options or MaskingOptions()

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``masked_words``, and the share of right guesses."""
        model, batch = context.trained(MaskedLanguageModel), context.batch
        real = real_words(batch)
        words, asked = self.mask(batch.words, real, model.body.hidden_word, context.generator)
        states = model.body(words, real)[asked]  # (M, D)
        target = batch.words[asked]
        logits = model.guess(states)  # (M, V)
        losses = F.cross_entropy(logits, target, reduction="none")
        everything = torch.ones_like(target, dtype=torch.bool)
        right = masked_mean((logits.argmax(-1) == target).float(), everything)
        return {"masked_words": masked_mean(losses, everything), "_guessed": right}

    def mask(
        self, words: Tensor, real: Tensor, hidden_word: int, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the words as the model sees them and which are asked for, (C, T) each."""
        options, shape = self.options, words.shape
        known = real & (words != UNKNOWN)
        draw = torch.rand(shape, generator=generator).to(words.device).masked_fill(~known, 2.0)
        asked = (draw < options.share) | ((draw == draw.amin(1, keepdim=True)) & known)
        fate = torch.rand(shape, generator=generator).to(words.device)
        others = torch.randint(UNKNOWN + 1, hidden_word, shape, generator=generator).to(words.device)
        seen = torch.where(asked & (fate < options.hidden), hidden_word, words)
        swapped = asked & (fate >= options.hidden) & (fate < options.hidden + options.replaced)
        return torch.where(swapped, others, seen), asked
