"""Teaching region features the language of captions. Nobody says which region a word means:

* *multiple-instance*: the score of a word for a photo is that of its best regions (Zhang et al., NIPS
  2005, noisy-or's kin);
* *contrastive*: among the photos of a batch, the one whose caption has the word should have it most (InfoNCE; Gupta et
  al., InfoGround, ECCV 2020, equation 3, with the word's row of the head as its query).

Which regions may answer for a word is a prior: words for COCO's kinds of things ("dog") ask for objectness, others
("grass", "shirt") for regionness. Without it parts answer for wholes, because a part often tells a word as surely as
the whole does.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from deixis.text.caption_words import is_thing_word

LOWEST = 0.02
WHOLE_THING, WHOLE_REGION = 0.05, 0.4
CERTAINTY = 0.6  # how sure one caption of a photo makes us that a word belongs to it; two make it certain


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


def word_goal(counts: Tensor) -> Tensor:
    """How surely a photo has each word, from the number of its captions that say it."""
    return (counts * CERTAINTY).clamp(max=1.0)


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
