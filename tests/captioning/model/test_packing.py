from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from deixis.captioning.model.packing import Places


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8).filter(any))
def test_steps_hold_every_word_once_and_come_back_in_order(lengths: list[int]) -> None:
    words = torch.zeros(len(lengths), 7, dtype=torch.long)
    for row, length in enumerate(lengths):
        words[row, :length] = torch.arange(length) + 10 * row + 4
    places = Places.of(words)
    assert places.counts == tuple(sum(length > t for length in lengths) for t in range(max(lengths)))
    packed = words[places.caption, places.time]
    steps = places.split(packed)
    for t, step in enumerate(steps):
        assert step.tolist() == words[places.order[: places.counts[t]], t].tolist()
        assert (step > 0).all()
    assert places.joined(list(steps), 0).tolist() == words[words != 0].tolist()
    assert places.in_order == (places.order.tolist() == list(range(len(lengths))))
