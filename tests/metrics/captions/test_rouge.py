from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.errors import DeixisError
from deixis.metrics.captions.rouge import rouge_l


def test_hand_worked() -> None:
    # "police kill the gunman" shares "police the gunman" with the caption: precision 3/4, recall 3/4.
    score = rouge_l([["police", "end", "the", "gunman"]], [[["police", "kill", "the", "gunman"]]])
    np.testing.assert_allclose(score, [0.75])
    # Best precision 2/3 from the first, best recall 1 from the second: (1 + 1.44) P R / (R + 1.44 P).
    score = rouge_l([["a", "b", "c"]], [[["a", "x", "b", "y"], ["a"]]])
    np.testing.assert_allclose(score, [2.44 * (2 / 3) / (1 + 1.44 * 2 / 3)])


words = st.lists(st.sampled_from("abc"), max_size=90)


@given(words, words)
def test_longest_common_subsequence_by_recursion(one: list[str], two: list[str]) -> None:
    one, two = one[:70] or ["z"], two[:90] or ["y"]

    @cache
    def common(i: int, j: int) -> int:
        if not i or not j:
            return 0
        if one[i - 1] == two[j - 1]:
            return common(i - 1, j - 1) + 1
        return max(common(i - 1, j), common(i, j - 1))

    longest = common(len(one), len(two))
    precision, recall = longest / len(one), longest / len(two)
    expected = 2.44 * precision * recall / (recall + 1.44 * precision) if longest else 0.0
    np.testing.assert_allclose(rouge_l([one], [[two]]), [expected])


def test_empty_and_wrong_input() -> None:
    assert rouge_l([[], ["a"]], [[["a"]], [[]]]).tolist() == [0, 0]
    assert rouge_l([[]], [[[], ["a"]]]).tolist() == [1]
    with pytest.raises(DeixisError, match="1 captions but references for 0"):
        rouge_l([["a"]], [])
    with pytest.raises(DeixisError, match="no references"):
        rouge_l([["a"]], [[]])
