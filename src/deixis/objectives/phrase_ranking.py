"""ReIR's ranking loss: a caption's phrases fit what they see in their own image better than what others see in theirs.

Liu et al., CVPR 2021, section 3.3, after Align2Ground (Datta et al., ICCV 2019); the paper leaves its form to a
supplement. Form ``code`` is the released program's: one vector per caption against one per image, a softmax over the
batch along rows and along columns, and the hinge on those probabilities. Form ``paper`` is ours, in the spirit of the
paper's reference: phrases are compared with what phrases see, each phrase looks over what the image shows, each thing
shown over the phrases, and the hinge is on the scores themselves. Both divide products by sqrt(512).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from deixis.grounding.reir.model import Reir
from deixis.objectives.base import Context, Objective
from deixis.objectives.reir_pass import reir_pass
from deixis.processes import gather_rows, masked_mean, processes

SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class PhraseRankingOptions:
    """Margin and negatives are the released program's."""

    form: Literal["paper", "code"] = "paper"
    margin: float = 0.2
    negatives: Literal["hardest", "sum"] = "hardest"


class PhraseRanking(Objective):
    """Hinge loss over captions and what other captions' images show, summed over both directions and levels.

    Captions of one image are never negatives of each other. With several processes, negatives come from all of them.

    Liu et al., *Relation-aware Instance Refinement for Weakly Supervised Visual Grounding*, CVPR 2021, section 3.3;
    Datta et al., *Align2Ground*, ICCV 2019. Use together with ``reconstruction``.

    >>> objective = PhraseRanking()
    >>> losses = objective(Context(grounder, batch))
    >>> losses["ranking"].backward()
    """

    trains = Reir
    needs = frozenset({"phrases"})

    def __init__(self, options: PhraseRankingOptions | None = None) -> None:
        super().__init__()
        self.options = options or PhraseRankingOptions()

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``ranking``, and the share of captions that fit their own image best."""
        model, batch, done = context.trained(Reir), context.batch, reir_pass(context)
        assert batch.phrases is not None
        caption, image_of = batch.phrases.caption, batch.image_of
        released = self.options.form == "code"
        words = model.match_phrase(done.sentence if released else done.phrase)  # (C, M) or (P, M)
        shown = [model.match_object(level.seen) for level in done.levels]
        if processes() > 1:
            captions = gather_rows(torch.ones_like(image_of[:1]) * len(image_of))
            phrases = gather_rows(torch.ones_like(image_of[:1]) * len(caption))
            images = gather_rows(torch.ones_like(image_of[:1]) * len(batch.regions))
            caption = gather_rows(caption) + (captions.cumsum(0) - captions).repeat_interleave(phrases)
            image_of = gather_rows(image_of) + (images.cumsum(0) - images).repeat_interleave(captions)
            words, shown = gather_rows(words), [gather_rows(rows) for rows in shown]
        owner = torch.unique(caption)  # captions without a phrase are out
        if not len(owner):
            return {"ranking": words.new_zeros(())}
        scale = model.config.match_width**0.5
        total = words.new_zeros(())
        right = words.new_zeros(())
        for rows in shown:
            if released:
                table = words[owner] @ shown_by_captions(rows, caption, owner).T / scale  # (C', C')
                hinged = torch.softmax(table, 1), torch.softmax(table, 0)
            else:
                table = caption_scores(words @ rows.T / scale, caption, owner)  # (C', C')
                hinged = table, table
            losses = ranking_losses(*hinged, image_of[owner], self.options.margin, self.options.negatives)
            everything = torch.ones_like(losses, dtype=torch.bool)
            total = total + masked_mean(losses, everything)
            right = (table.argmax(1) == torch.arange(len(table), device=table.device)).float().mean()
        return {"ranking": total, "_ranked": right}


def caption_scores(products: Tensor, caption: Tensor, owner: Tensor) -> Tensor:
    """Return the score of every caption with what every caption's image shows, (P, P), (P,), (C',) -> (C', C').

    ``products[i, j]`` compares phrase i with what phrase j sees. Row: the caption that is read; column: the caption
    through which its image is seen.
    """
    products = products.double()  # the softmax of a group is cut out of one over all: its range must not underflow
    member = (caption.unsqueeze(0) == owner.unsqueeze(1)).to(products.dtype)  # (C', P)
    count = member.sum(1)
    # each phrase looks over what an image shows ...
    grown = torch.exp(products - products.detach().amax(1, keepdim=True))
    by_phrase = ((grown * products) @ member.T) / (grown @ member.T).clamp(min=SMALLEST)  # (P, C')
    # ... and each thing shown looks over the phrases of a caption
    grown = torch.exp(products - products.detach().amax(0, keepdim=True))
    by_thing = (member @ (grown * products)) / (member @ grown).clamp(min=SMALLEST)  # (C', P)
    return ((member @ by_phrase / count.unsqueeze(1) + by_thing @ member.T / count.unsqueeze(0)) / 2).float()


def shown_by_captions(rows: Tensor, caption: Tensor, owner: Tensor) -> Tensor:
    """Return the mean of what the phrases of each caption see, (P, M), (P,), (C',) -> (C', M)."""
    member = (caption.unsqueeze(0) == owner.unsqueeze(1)).to(rows.dtype)  # (C', P)
    return member @ rows / member.sum(1, keepdim=True)


def ranking_losses(
    by_row: Tensor, by_column: Tensor, image_of: Tensor, margin: float, negatives: str = "hardest"
) -> Tensor:
    """Return each caption's hinge losses, over other images in its row of one table and over other captions in its
    column of another, (C, C), (C, C), (C,) -> (C,)."""
    same = image_of.unsqueeze(0) == image_of.unsqueeze(1)
    other_images = (margin - by_row.diagonal().unsqueeze(1) + by_row).clamp(min=0).masked_fill(same, 0.0)
    other_captions = (margin - by_column.diagonal().unsqueeze(0) + by_column).clamp(min=0).masked_fill(same, 0.0)
    if negatives == "sum":
        return other_images.sum(1) + other_captions.sum(0)
    return other_images.amax(1) + other_captions.amax(0)
