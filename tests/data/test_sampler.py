"""Batches: every image once, whoever asks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.data.sampler import Sampler, choose_captions, split
from deixis.errors import DeixisError


@given(st.integers(1, 200), st.integers(1, 70), st.integers(0, 5), st.integers(0, 5))
def test_an_epoch_holds_every_image_once_in_even_batches(count: int, batch: int, seed: int, epoch: int) -> None:
    batches = Sampler(count, batch, seed=seed).batches(epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(count))
    sizes = [len(b) for b in batches]
    assert max(sizes) <= batch
    assert max(sizes) - min(sizes) <= 1
    assert len(batches) == len(Sampler(count, batch, seed=seed))


def test_order_depends_on_seed_stage_and_epoch_alone() -> None:
    def order(seed: int, stage: int, epoch: int) -> list[int]:
        return [int(row) for batch in Sampler(50, 8, seed=seed, stage=stage).batches(epoch) for row in batch]

    assert order(1, 0, 0) == order(1, 0, 0)
    assert len({tuple(order(*key)) for key in [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1)]}) == 4


@given(st.integers(1, 40), st.integers(1, 5))
def test_shards_join_to_the_batch(size: int, processes: int) -> None:
    batch = np.arange(size)
    assert np.concatenate(split(batch, processes)).tolist() == batch.tolist()


def test_too_many_processes_are_refused() -> None:
    Sampler(24, 8, seed=1).check(processes=4, parts=2)
    with pytest.raises(DeixisError, match="batches of 8 images cannot be shared by 5 processes in 2 parts"):
        Sampler(24, 8, seed=1).check(processes=5, parts=2)
    with pytest.raises(DeixisError, match="no image"):
        Sampler(0, 8, seed=1)


def test_captions_of_an_epoch() -> None:
    assert list(choose_captions(4, 5, seed=1, epoch=0, image=3)) == [0, 1, 2, 3]
    some = [tuple(choose_captions(20, 5, seed=1, epoch=epoch, image=3)) for epoch in range(8)]
    assert all(len(set(chosen)) == 5 and list(chosen) == sorted(chosen) for chosen in some)
    assert len(set(some)) > 1
