"""Phrase reconstruction: a phrase must be told from what it attends to.

GroundeR (Rohrbach et al., ECCV 2016); ReIR (Liu et al., CVPR 2021, section 3.3, equations 13 and 14).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from deixis.data.batch import Batch
from deixis.data.sizes import InputSizes
from deixis.grounding.reir.features import recurrent
from deixis.grounding.reir.model import Reir
from deixis.objectives.balance import Reduction, reduced
from deixis.objectives.base import Context, Objective
from deixis.objectives.reir_pass import reir_pass
from deixis.processes import masked_mean
from deixis.text.vocabulary import BEGIN, END, PAD


@dataclass(frozen=True, slots=True)
class ReconstructionOptions:
    """Width of the decoder's state, 0 takes the model's; and how the words of a caption's phrases are added up."""

    width: int = 0
    reduction: Reduction = "sum"


class Reconstruction(Objective):
    """Cross entropy of each phrase's words and its end, at every level the model has, from one shared decoder.

    The decoder reads [what the phrase sees; the previous word] (equation 13). Equation 14 sums over the words of a
    caption's phrases. The released program's decoder (the model's ``form: code``) reads what the phrase sees as if it
    were the first word, and only the last level is trained on.

    Rohrbach et al., *Grounding of Textual Phrases in Images by Reconstruction*, ECCV 2016; Liu et al., *Relation-aware
    Instance Refinement for Weakly Supervised Visual Grounding*, CVPR 2021, section 3.3, equations 13 and 14.

    >>> objective = Reconstruction(ReconstructionOptions(), grounder, sizes)
    >>> losses = objective(Context(grounder, batch))
    >>> losses["reconstruction"].backward()
    """

    trains = Reir
    needs = frozenset({"phrases"})

    def __init__(self, options: ReconstructionOptions, model: Reir, sizes: InputSizes) -> None:
        super().__init__()
        self.reduction: Reduction = options.reduction
        config = model.config
        width = options.width or config.width
        self.first_word = config.form == "code"
        word_width = config.width if self.first_word else config.word_width
        self.embed = nn.Embedding(sizes.words, word_width, padding_idx=PAD)
        self.decode = recurrent(config.form, config.width + (0 if self.first_word else word_width), width)
        self.say = nn.Linear(width, sizes.words)

    def forward(self, context: Context) -> dict[str, Tensor]:
        """Return ``reconstruction``, the sum over levels, and the share of words guessed right at the last one."""
        batch = context.batch
        assert batch.phrases is not None
        words = phrase_targets(batch)
        caption = batch.phrases.caption.unsqueeze(1).expand_as(words)[words != PAD]
        total, right = None, words.new_zeros((), dtype=torch.float32)
        for level in reir_pass(context).levels[-1 if self.first_word else 0 :]:
            logits = self.logits(level.seen, words)  # (P, L, V)
            losses = F.cross_entropy(logits.flatten(0, 1), words.flatten(), reduction="none").view_as(words)
            loss = reduced(losses[words != PAD], caption, len(batch), self.reduction)
            total = loss if total is None else total + loss
            right = masked_mean((logits.argmax(-1) == words).float(), words != PAD)
        assert total is not None
        return {"reconstruction": total, "_reconstructed": right}

    def logits(self, seen: Tensor, words: Tensor) -> Tensor:
        """Return what the decoder expects at each place, (P, D), (P, L) -> (P, L, V)."""
        if not len(words):
            return self.say(seen.new_zeros(0, words.shape[1], self.say.in_features))  # type: ignore[no-any-return]
        if self.first_word:
            sequence = torch.cat([seen.unsqueeze(1), self.embed(words[:, :-1])], 1)  # (P, L, D)
            return self.say(self.decode(sequence)[0])  # type: ignore[no-any-return]
        before = F.pad(words[:, :-1], (1, 0), value=BEGIN)
        repeated = seen.unsqueeze(1).expand(-1, words.shape[1], -1)
        states = self.decode(torch.cat([repeated, self.embed(before)], -1))[0]
        return self.say(states)  # type: ignore[no-any-return]


def phrase_targets(batch: Batch) -> Tensor:
    """Return the words of each phrase followed by the end token, padded, (P, L)."""
    phrases = batch.phrases
    assert phrases is not None
    lengths = phrases.last - phrases.first  # (P,)
    longest = int(lengths.max()) + 1 if len(lengths) else 1
    place = torch.arange(longest, device=lengths.device)
    at = (phrases.first.unsqueeze(1) + place).clamp(max=batch.words.shape[1] - 1)
    words = batch.words[phrases.caption.unsqueeze(1), at]
    words = words.masked_fill(place == lengths.unsqueeze(1), END)
    return words.masked_fill(place > lengths.unsqueeze(1), PAD)
