"""Where a model looks at the annotated words of ground-truth sentences, asked of captioners and grounders alike.

POS-SCAN, table 1, holds a teacher against its pupil this way: SCAN, POS-SCAN and the captioner read the same captions,
and the region each looks at most is compared with the boxes of the word (GVD's attention accuracy, per class).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from deixis.captioning.answer import Pointing, point, priors
from deixis.captioning.model.captioner import Captioner
from deixis.data.batch import Batch
from deixis.data.collate import CaptionEncoder, RegionSource, collate, encode_example
from deixis.grounding.base import WordGrounder
from deixis.metrics.grounding.dataset_words import DatasetWords
from deixis.metrics.grounding.object_words import AnnotatedAttention, PredictedWord
from deixis.text.tokens import normal_word
from deixis.text.vocabulary import Vocabulary
from deixis.types import Example

LONGEST = 60

Look = Callable[[Batch], Tensor]
"""Gives the weights of each branch, caption and word over regions, (K, C, T, N)."""


def look_of(model: Captioner | WordGrounder, pointing: Pointing) -> Look:
    """Return how a model looks: a captioner as it points, a grounder as it answers, each with its priors."""

    def captioner_looks(batch: Batch) -> Tensor:
        assert isinstance(model, Captioner)
        decoded = model.decode(model.encode(batch.regions), batch.words, batch.image_of)
        return decoded.attention * priors(batch.regions, pointing)[batch.image_of, None]

    def grounder_looks(batch: Batch) -> Tensor:
        assert isinstance(model, WordGrounder)
        return model.attention(batch).unsqueeze(0)

    return captioner_looks if isinstance(model, Captioner) else grounder_looks


@torch.no_grad()
def look_at_references(
    model: Captioner | WordGrounder,
    vocabulary: Vocabulary,
    examples: Sequence[Example],
    words: DatasetWords,
    source: RegionSource,
    *,
    pointing: Pointing = Pointing(),  # noqa: B008 - frozen
    batch: int = 16,
    device: torch.device | str = "cpu",
) -> list[AnnotatedAttention]:
    """Feed every reference and see where the model looks at its annotated words, a box a frame."""
    encoder = CaptionEncoder(vocabulary, LONGEST)
    branches = isinstance(model, Captioner) and model.branches
    pointing = model.pointing(pointing) if isinstance(model, Captioner) else pointing
    look = look_of(model, pointing)
    found: list[AnnotatedAttention] = []
    for first in range(0, len(examples), batch):
        part = [example for example in examples[first : first + batch] if example.captions]
        if not part:
            continue
        regions = source.regions([example.id for example in part])
        made = collate([encode_example(example, encoder) for example in part], regions).to(device)
        weights = look(made).cpu()  # (K, C, T, N)
        everyone = torch.ones(len(weights), dtype=torch.bool)
        row = 0
        for image, example in enumerate(part):
            sentences = dict(enumerate(words.sentences[example.id]))
            for number, caption in enumerate(example.captions):
                place = _positions([normal_word(token.text) is not None for token in caption.tokens])
                looked: dict[int, PredictedWord] = {}
                reference = sentences.get(number)
                for word in reference.words if reference is not None else ():
                    at = place.get(word.index)
                    if at is None or at >= weights.shape[2]:
                        continue
                    where = point(
                        weights[:, row, at],
                        everyone,
                        regions.boxes[image],
                        regions.mask[image],
                        regions.frame[image],
                        pointing,
                        branches=branches,
                    )
                    lemma = words.classes.lemma(word.label)
                    looked[word.index] = PredictedWord(word.label, lemma, where.boxes, where.frames, word.index)
                if reference is not None:
                    found.append(AnnotatedAttention(f"{example.id}#{number}", reference, looked, group=example.id))
                row += 1
    return found


def _positions(kept: Sequence[bool]) -> dict[int, int]:
    """Return the word position of each token that is a word, up to where captions are cut."""
    numbers = [at for at, word in enumerate(kept) if word][:LONGEST]
    return {token: position for position, token in enumerate(numbers)}
