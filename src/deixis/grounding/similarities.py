"""How well every caption fits every image, by a grounder that can say how well one fits.

The table of SCAN's retrieval (Lee et al., ECCV 2018, section 4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from deixis.data.batch import Batch
from deixis.data.collate import CaptionEncoder, RegionSource, collate, encode_example
from deixis.grounding.base import LONGEST_SENTENCE, WordGrounder
from deixis.text.vocabulary import Vocabulary
from deixis.types import Example

PAIRS_AT_ONCE = 512


@torch.no_grad()
def similarities(
    model: WordGrounder,
    vocabulary: Vocabulary,
    examples: Sequence[Example],
    source: RegionSource,
    device: torch.device | str = "cpu",
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return how well every caption fits every image, (I, C), and which image each caption belongs to, (C,)."""
    encoder = CaptionEncoder(vocabulary, LONGEST_SENTENCE)
    encoded = [encode_example(example, encoder) for example in examples]
    batch = collate(encoded, source.regions([example.id for example in examples])).to(device)
    # phrases and relations of captions point at rows that pairs do not have
    bare = replace(batch, phrases=None, relations=None, phrase_boxes=None, references=(), caption_ids=())
    scores = np.zeros((len(examples), len(batch)), dtype=np.float32)
    for image in range(len(examples)):
        for first in range(0, len(batch), PAIRS_AT_ONCE):
            some = slice(first, first + PAIRS_AT_ONCE)
            scores[image, some] = model.match(_with_image(bare, image, some)).float().cpu().numpy()
    return scores, batch.image_of.cpu().numpy()


def _with_image(batch: Batch, image: int, captions: slice) -> Batch:
    """Return some captions, all about one image."""
    one = batch.regions
    alone = {
        name: value[image : image + 1]
        for name in one.__dataclass_fields__
        if isinstance(value := getattr(one, name), torch.Tensor)
    }
    words = batch.words[captions]
    return replace(
        batch,
        regions=replace(one, ids=(one.ids[image],), **alone),
        words=words,
        tags=batch.tags[captions],
        image_of=torch.zeros(len(words), dtype=torch.long, device=words.device),
    )
