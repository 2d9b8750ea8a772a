"""From scores of regions to grounded phrases: the answer people and metrics get."""

from __future__ import annotations

import torch
from torch import Tensor

from deixis.types import Box, GroundedPhrase, GroundedPhrases, Phrase, Regions, Sentence, box_of


def ranked_phrase(
    regions: Regions, sentence: Sentence, phrase: Phrase, logits: Tensor, count: int = 10
) -> GroundedPhrase:
    """Return a phrase with the boxes of its best regions; ``logits`` (N,) scores the regions.

    The score is the share of the best region in the softmax over all; a clip has the best box of every frame.
    """
    start, end = sentence.phrase_span(phrase)
    probabilities = torch.softmax(logits.float(), -1)
    order = torch.argsort(probabilities, descending=True, stable=True)
    best = [int(order[0])]
    if regions.frames > 1:
        best = [int(order[regions.frame[order] == frame][0]) for frame in range(regions.frames)]
    ranked = order[:count]
    return GroundedPhrase(
        text=sentence.text[start:end],
        boxes=tuple(box_of(regions.boxes[at].tolist()) for at in best),
        frames=tuple(int(regions.frame[at]) for at in best),
        score=float(probabilities[order[0]]),
        start=start,
        end=end,
        ranked=tuple(box_of(regions.boxes[at].tolist()) for at in ranked),
        ranked_scores=tuple(float(probabilities[at]) for at in ranked),
    )


def unknown_phrase(regions: Regions, sentence: Sentence, phrase: Phrase) -> GroundedPhrase:
    """Return the answer for a phrase the model knows no word of: not found, and the whole image as the best guess."""
    start, end = sentence.phrase_span(phrase)
    whole: Box = (0.0, 0.0, float(regions.size[0]), float(regions.size[1]))
    return GroundedPhrase(sentence.text[start:end], (whole,), (regions.frames - 1,), 0.0, False, start, end)


def grounded(sentence: Sentence, regions: Regions, phrases: tuple[GroundedPhrase, ...]) -> GroundedPhrases:
    """Return the phrases of one image, still without its name and the model's."""
    return GroundedPhrases("", regions.size, phrases, sentence.text)
