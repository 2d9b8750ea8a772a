"""Choosing among the captions of a beam by what a grounder finds in the image.

POS-SCAN (section 3.3, eq. 19) rewards captions by CIDEr and by a matcher's score while it trains. The same score can
be asked once more when a caption is chosen: a beam search ends with several captions that its captioner likes about
equally well, and the matcher knows better which of them names what is there. Nothing is trained for it.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from deixis.captioning.search.strategy import Generated
from deixis.data.batch import Batch, RegionBatch
from deixis.interfaces import Grounder
from deixis.text.vocabulary import Vocabulary

REPEATED = 2.5
"""How much match a noun that is said again costs: "a cup with a cup" is seldom what anybody means."""


class Chooser:
    """Ranks the captions of a beam anew: log-probability per word + ``weight`` times the grounder's matching score.

    Per word, because the sum would favour short captions, and a short caption has little that could fail to match. The
    match is a mean over words, so a caption could please the grounder by saying one sure noun twice: that costs
    ``REPEATED`` of match each time.

    Args:
        grounder: Who judges how well a caption matches its image.
        known: The grounder's words; the captioner's are translated by spelling.
        said: The captioner's words.
        weight: Of the matching score, which has a scale of its own; 0 leaves the order as it is.
    """

    def __init__(self, grounder: Grounder, known: Vocabulary, said: Vocabulary, weight: float) -> None:
        self.grounder = grounder
        self.weight = weight
        self.translated = torch.tensor(said.ids_in(known))  # (V,)
        self.kinds = torch.tensor(known.kinds)  # (V,)
        self.nouns = torch.tensor(said.is_noun)  # (V,)
        self.lemmas = torch.tensor(said.lemma_ids)  # (V,)

    def __call__(self, generated: Generated, regions: RegionBatch) -> Generated:
        """Return the same captions, best first; ``regions`` are those the grounder looks at."""
        if not self.weight or generated.words.shape[1] < 2:
            return generated
        matches = self.matches(generated.words, regions)  # (B, G)
        scores = generated.log_probs.sum(-1) / generated.mask.sum(-1).clamp(min=1) + self.weight * matches
        scores = scores - self.weight * REPEATED * self.repeated(generated.words)
        order = scores.argsort(dim=1, descending=True, stable=True)  # (B, G)
        rows = torch.arange(len(order), device=order.device).unsqueeze(1)
        return replace(
            generated,
            words=generated.words[rows, order],
            log_probs=generated.log_probs[rows, order],
            scores=scores[rows, order],
            attention=generated.attention[:, rows, order],
            voted=generated.voted[:, rows, order],
        )

    def matches(self, words: Tensor, regions: RegionBatch) -> Tensor:
        """Return how well each of G captions matches its image, (B, G, T) -> (B, G)."""
        images, count, _ = words.shape
        known = self.translated.to(words.device)[words.flatten(0, 1)]  # (B * G, T)
        image_of = torch.arange(images, device=words.device).repeat_interleave(count)
        batch = Batch(regions, known, image_of, self.kinds.to(words.device)[known])
        with torch.inference_mode():
            return self.grounder.match(batch).float().view(images, count)

    def repeated(self, words: Tensor) -> Tensor:
        """Return how many nouns of each caption were said in it before, as one or as many, (B, G, T) -> (B, G)."""
        lemmas = self.lemmas.to(words.device)[words]
        again = (lemmas.unsqueeze(-1) == lemmas.unsqueeze(-2)).tril(-1).any(-1)  # (B, G, T) whether it came before
        return (again & self.nouns.to(words.device)[words]).sum(-1)
