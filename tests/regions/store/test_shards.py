"""The largest entries of wide distributions, against a stable sort."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deixis.regions.store.shards import largest

halves = arrays(
    np.float16, (3, 40), elements=st.floats(-8, 8, width=16) | st.sampled_from([0.0, -0.0, 0.25, 6e-8]), fill=st.just(0)
)


@given(halves, st.integers(1, 40))
def test_largest_are_those_of_a_stable_sort(half: np.ndarray, count: int) -> None:
    np.testing.assert_array_equal(largest(half, count), np.argsort(-half, axis=1, kind="stable")[:, :count])


def test_of_equal_entries_the_first_come_first() -> None:
    half = np.array([[0.5, 0.0, 0.5, -0.0, 0.75]], np.float16)
    assert largest(half, 4).tolist() == [[4, 0, 2, 1]]
