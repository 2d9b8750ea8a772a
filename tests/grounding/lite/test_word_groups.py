"""Groups of words: lists do not overlap, and words of any form fall into the right one."""

from __future__ import annotations

import pytest

from deixis.grounding.lite.word_groups import BODY, PLACE, WORN, WordGroup, word_group


@pytest.mark.parametrize(
    ("word", "lemma", "group"),
    [
        ("dogs", "dog", WordGroup.THING),
        ("shirts", "shirt", WordGroup.WORN),
        ("jeans", "jean", WordGroup.WORN),
        ("feet", "foot", WordGroup.BODY),
        ("streets", "street", WordGroup.PLACE),
        ("rocks", "rock", WordGroup.PLACE),
        ("rock", "rock", WordGroup.OTHER),
        ("idea", "idea", WordGroup.OTHER),
        ("", "", WordGroup.OTHER),
    ],
)
def test_words_fall_into_groups(word: str, lemma: str, group: WordGroup) -> None:
    assert word_group(word, lemma) is group


def test_no_word_is_in_two_lists() -> None:
    assert not WORN & BODY
    assert not WORN & PLACE
    assert not BODY & PLACE
