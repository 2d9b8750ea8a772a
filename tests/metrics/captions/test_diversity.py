from __future__ import annotations

from typing import Any

import pytest

from deixis.errors import DeixisError
from deixis.metrics.captions.diversity import diversity


def test_hand_worked() -> None:
    captions = {"1": ["A dog runs.", "a dog sits"], "2": ["a dog runs", "Cats!"]}
    got = diversity(captions, training=["A DOG SITS", "something else"])
    assert got.captions == 4
    assert got.mean_length == 10 / 4
    assert got.vocabulary == 5  # a dog runs sits cats
    assert got.distinct_1 == 5 / 10
    assert got.distinct_2 == 3 / 10  # a dog, dog runs, dog sits
    assert got.div_1 == pytest.approx((4 / 6 + 4 / 4) / 2)
    assert got.div_2 == pytest.approx((3 / 6 + 2 / 4) / 2)
    assert got.unique == 2 / 4  # "a dog runs" is given to both images
    assert got.novel == 3 / 4
    assert got.as_dict()["vocabulary"] == 5


def test_one_caption_for_each_image() -> None:
    got = diversity({"1": "a dog", "2": ""})
    assert (got.mean_length, got.distinct_1, got.div_1, got.novel) == (1.0, 1.0, 0.5, None)


@pytest.mark.parametrize(
    ("captions", "message"),
    [({}, "no captions"), ({"1": []}, "image '1' has no captions"), ({"1": [4]}, r"image '1' is 4 \(int\)")],
)
def test_wrong_input_is_named(captions: Any, message: str) -> None:
    with pytest.raises(DeixisError, match=message):
        diversity(captions)
