"""Retrieval both ways against a loop over ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deixis.errors import DeixisError
from deixis.metrics.bootstrap import value_of
from deixis.metrics.retrieval import score_retrieval


def test_by_hand() -> None:
    similarity = np.array([[0.9, 0.1, 0.8, 0.3], [0.2, 0.7, 0.1, 0.4]])
    result = score_retrieval(similarity, np.array([0, 0, 1, 1]))
    assert result.image_to_text.tolist() == [1, 2]  # image 1: caption 1 (0.7) comes before its own 3 (0.4)
    assert result.text_to_image.tolist() == [1, 2, 2, 1]
    assert result.scores["i2t_R@1"] == 0.5
    assert result.scores["t2i_R@1"] == 0.5
    assert result.scores["t2i_R@5"] == 1
    assert value_of(result.samples["t2i_R@1"]) == 0.5


def test_equal_scores_find_nothing() -> None:
    scores = score_retrieval(np.zeros((20, 20)), np.arange(20)).scores
    assert scores["i2t_R@10"] == 0
    assert scores["t2i_R@10"] == 0


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, (4, 8), elements=st.floats(-1, 1)), st.permutations([0, 0, 1, 1, 2, 2, 3, 3]))
def test_ranks_equal_a_loop(similarity: np.ndarray, owner: list[int]) -> None:
    result = score_retrieval(similarity, np.array(owner))
    for caption, image in enumerate(owner):
        better = sum(similarity[i, caption] >= similarity[image, caption] for i in range(4) if i != image)
        assert result.text_to_image[caption] == 1 + better
    for image in range(4):
        best = max(similarity[image, c] for c in range(8) if owner[c] == image)
        better = sum(similarity[image, c] >= best for c in range(8) if owner[c] != image)
        assert result.image_to_text[image] == 1 + better


def test_bad_input() -> None:
    with pytest.raises(DeixisError, match=r"similarity\[0, 1\] is nan"):
        score_retrieval(np.array([[1.0, np.nan]]), np.array([0, 0]))
    with pytest.raises(DeixisError, match=r"missing \[1\]"):
        score_retrieval(np.ones((2, 2)), np.array([0, 0]))
    with pytest.raises(DeixisError, match="shapes"):
        score_retrieval(np.ones((2, 2)), np.array([0]))
