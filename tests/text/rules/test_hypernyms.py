from __future__ import annotations

from deixis.text.rules.hypernyms import WIDER, wider_names


def test_wider_names_go_all_the_way_up() -> None:
    assert wider_names("puppy") == {"dog", "animal"}
    assert wider_names("boy") == {"child", "kid", "male", "person", "people", "someone", "human"}
    assert wider_names("sky") == frozenset()


def test_nothing_is_wider_than_itself() -> None:
    assert not [word for word, wider in WIDER.items() if word in wider]
