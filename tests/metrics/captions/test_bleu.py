from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.metrics.captions.bleu import bleu
from deixis.metrics.captions.ngrams import ReferenceNgrams


def test_the_example_of_the_paper() -> None:
    # Papineni et al., section 2.1: "the" seven times has a clipped precision of 2/7.
    one, two = "the cat is on the mat", "there is a cat on the mat"
    references = ReferenceNgrams({"1": [one.split(), two.split()]})
    scores = bleu([["the"] * 7], ["1"], references)
    assert scores.corpus[0] == pytest.approx(2 / 7, rel=1e-6)
    assert scores.corpus[1] < 1e-4


def test_brevity_takes_the_closest_length_and_the_shorter_on_a_tie() -> None:
    references = ReferenceNgrams({"1": [list("abcdef"), list("ab"), list("abcdefghi")]})
    scores = bleu([list("abcd"), list("abcdefgh"), list("a")], ["1", "1", "1"], references)
    # 4 words lie between 2 and 6: 2 wins. 8 is nearest to 9. 1 is nearest to 2.
    np.testing.assert_allclose(scores.per_caption[:, 0], [1, math.exp(1 - 9 / 8), math.exp(1 - 2)], rtol=1e-6)
    assert scores.corpus[0] == pytest.approx(1.0)  # 13 words against 2 + 9 + 2


words = st.lists(st.sampled_from("abcd"), max_size=8)


@given(st.lists(st.tuples(words, st.lists(words, min_size=1, max_size=3)), min_size=1, max_size=5))
def test_equals_counting_by_hand(items: list[tuple[list[str], list[list[str]]]]) -> None:
    references = {str(at): refs for at, (_, refs) in enumerate(items)}
    scores = bleu([caption for caption, _ in items], list(references), ReferenceNgrams(references))
    product, length, closest = 1.0, 0, 0
    for caption, refs in items:
        length += len(caption)
        closest += min((abs(len(r) - len(caption)), len(r)) for r in refs)[1]
    for n in range(1, 5):
        right = total = 0
        for caption, refs in items:
            grams = Counter(tuple(caption[i : i + n]) for i in range(len(caption) - n + 1))
            most: Counter[tuple[str, ...]] = Counter()
            for r in refs:
                most |= Counter(tuple(r[i : i + n]) for i in range(len(r) - n + 1))
            right, total = right + (grams & most).total(), total + grams.total()
        product *= (right + 1e-15) / (total + 1e-9)
        ratio = (length + 1e-15) / (closest + 1e-9)
        expected = product ** (1 / n) * (math.exp(1 - 1 / ratio) if ratio < 1 else 1)
        assert scores.corpus[n - 1] == pytest.approx(expected, rel=1e-9)
