"""What a frozen word encoder has read: features of captions and of words put in another's place, in half precision."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Caption = tuple[int, ...]
Spot = tuple[Caption, int]
"""A caption and the position of the word that is replaced."""


class FeatureMemory:
    """Keeps features while there is room; what does not fit is read again. ``megabytes`` bounds the features alone."""

    def __init__(self, megabytes: int) -> None:
        self.captions: dict[Caption, Tensor] = {}  # -> (T, W)
        self._words: dict[Spot, dict[int, NDArray[np.float16]]] = {}  # -> word -> (W,)
        self._whole = self._room = megabytes * 2**20

    def keep_caption(self, caption: Caption, features: Tensor) -> None:
        """Keep the features of a caption's words."""
        if self._fits(2 * features.numel()):
            self.captions[caption] = features

    def word(self, spot: Spot, word: int) -> NDArray[np.float16] | None:
        """Return the feature of a word in a caption's place, if it was kept."""
        return self._words.get(spot, {}).get(word)

    def keep_word(self, spot: Spot, word: int, feature: NDArray[np.float16]) -> None:
        """Keep the feature of a word in a caption's place."""
        if self._fits(2 * feature.size):
            self._words.setdefault(spot, {})[word] = feature

    def clear(self) -> None:
        """Forget everything, for when the encoder's weights change."""
        self.captions.clear()
        self._words.clear()
        self._room = self._whole

    def _fits(self, size: int) -> bool:
        if size > self._room:
            return False
        self._room -= size
        return True


@lru_cache(maxsize=2)
def shared_memory(name: str, megabytes: int) -> FeatureMemory:
    """Return the memory of all encoders in this process with the same weights and words: runs that follow each other
    read each caption once between them."""
    return FeatureMemory(megabytes)


def by_length(captions: list[Caption], size: int) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Yield the numbers of captions of about one length, ``size`` at a time, as padded words and mask, (n, T) each."""
    order = sorted(range(len(captions)), key=lambda at: len(captions[at]))
    for first in range(0, len(order), size):
        rows = order[first : first + size]
        longest = len(captions[rows[-1]])
        words = torch.zeros(len(rows), longest, dtype=torch.long)
        mask = torch.zeros(len(rows), longest, dtype=torch.bool)
        for row, at in enumerate(rows):
            words[row, : len(captions[at])] = torch.tensor(captions[at], dtype=torch.long)
            mask[row, : len(captions[at])] = True
        yield rows, words, mask
