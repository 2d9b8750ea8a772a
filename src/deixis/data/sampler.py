"""Which images make up which batch: an order that depends on seed and epoch alone, not on the number of processes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deixis.errors import DeixisError

Index = NDArray[np.int64]


class Sampler:
    """Cuts a shuffled epoch into global batches, and a global batch into the shards of the processes.

    Batches are as even as possible, so that no epoch ends on a batch of one: 10 images in batches of at most 4 are 4, 3
    and 3. Being a function of (seed, epoch), the order needs no state: a run resumes at any batch of any epoch.

    >>> [len(batch) for batch in Sampler(10, 4, seed=1).batches(epoch=0)]
    [4, 3, 3]
    """

    def __init__(self, count: int, batch: int, *, seed: int, stage: int = 0) -> None:
        if count < 1:
            raise DeixisError("there is no image to sample from")
        if batch < 1:
            raise DeixisError(f"a batch of {batch} images cannot be made")
        self.count = count
        self.batch = min(batch, count)
        self.seed = seed
        self.stage = stage

    def __len__(self) -> int:
        """Return the number of batches in an epoch."""
        return -(-self.count // self.batch)

    def batches(self, epoch: int) -> list[Index]:
        """Return the global batches of an epoch as image numbers."""
        order = np.random.default_rng([self.seed, self.stage, epoch]).permutation(self.count)
        return np.array_split(order, len(self))

    def check(self, processes: int, parts: int = 1) -> None:
        """Raise unless every process gets at least one image of every part of every batch."""
        smallest = self.count // len(self)
        if smallest < processes * parts:
            raise DeixisError(
                f"batches of {smallest} images cannot be shared by {processes} processes in {parts} parts each: "
                "make the batch larger, or use fewer processes or parts"
            )


def split(batch: Index, parts: int) -> list[Index]:
    """Cut a batch into even parts, in order."""
    return np.array_split(batch, parts)


def choose_captions(available: int, wanted: int, *, seed: int, epoch: int, image: int) -> Sequence[int]:
    """Return which captions of an image an epoch uses: all, or ``wanted`` of them, others in every epoch."""
    if available <= wanted:
        return range(available)
    chosen = np.random.default_rng([seed, epoch, image]).choice(available, wanted, replace=False)
    return sorted(int(index) for index in chosen)
