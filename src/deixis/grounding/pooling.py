"""From scores of words to scores of phrases: the one place where all grounders do it.

InfoGround (Gupta et al., ECCV 2020, section 3.2) gives a region the largest score among a phrase's tokens; the mean
over the tokens and the score of the head word are the alternatives.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from deixis.data.batch import PhraseBatch

PhrasePooling = Literal["max", "mean", "head"]


def phrase_scores(
    word_scores: Tensor, phrases: PhraseBatch, how: PhrasePooling = "max", words: Tensor | None = None
) -> Tensor:
    """Pool scores of words over each phrase, (C, T, N) -> (P, N).

    ``words`` (C, T) says which words count, such as nouns and adjectives; a phrase without any of them uses all its
    words. The head word always counts for ``head``.
    """
    if how == "head":
        return word_scores[phrases.caption, phrases.head]  # (P, N)
    place = torch.arange(word_scores.shape[1], device=word_scores.device)  # (T,)
    inside = (place >= phrases.first.unsqueeze(1)) & (place < phrases.last.unsqueeze(1))  # (P, T)
    if words is not None:
        chosen = inside & words[phrases.caption]
        inside = torch.where(chosen.any(1, keepdim=True), chosen, inside)
    scores = word_scores[phrases.caption]  # (P, T, N)
    if how == "max":
        return scores.masked_fill(~inside.unsqueeze(-1), -torch.inf).amax(1)
    return torch.where(inside.unsqueeze(-1), scores, 0.0).sum(1) / inside.sum(1, keepdim=True)
