"""What makes captions hard to believe, by hand."""

from __future__ import annotations

import pytest

from deixis.errors import DeixisError
from deixis.metrics.captions.believable import believable_section, shares_a_box
from deixis.types import Box, GroundedCaption, GroundedWord

LEFT, RIGHT, NEARLY_LEFT = (0.0, 0.0, 40.0, 80.0), (60.0, 0.0, 100.0, 80.0), (0.0, 0.0, 42.0, 80.0)


def caption(image: str, *things: tuple[str, Box], doubted: str = "") -> GroundedCaption:
    words, text = [], ""
    for name, box in things:
        words.append(GroundedWord("a", len(text), len(text) + 1))
        start = len(text) + 2
        text += f"a {name} "
        words.append(
            GroundedWord(name, start, start + len(name), (box,), (0,), 0.5, groundable=True, trusted=name != doubted)
        )
    return GroundedCaption(image, (100, 80), text.strip(), tuple(words), -1.0)


def test_the_three_rates_by_hand() -> None:
    captions = [
        caption("1", ("dog", LEFT), ("ball", RIGHT)),  # the ball is invented
        caption("2", ("kitchen", LEFT), ("kitchen", RIGHT)),  # said twice
        caption("3", ("men", LEFT), ("horse", NEARLY_LEFT)),  # one box for two
    ]
    references = {"1": ["Dogs run."], "2": ["A kitchen."], "3": ["A man rides.", "A horse."]}
    section = believable_section(captions, references, replicates=50, seed=0)
    assert section.scores == {
        "invented": pytest.approx(1 / 6),
        "shared_box": pytest.approx(1 / 3),
        "repeated_noun": pytest.approx(1 / 3),
    }
    assert set(section.intervals) == set(section.scores)


def test_doubted_words_and_other_frames_share_nothing() -> None:
    together = caption("1", ("man", LEFT), ("horse", NEARLY_LEFT))
    assert shares_a_box(together)
    assert not shares_a_box(caption("1", ("man", LEFT), ("horse", NEARLY_LEFT), doubted="horse"))
    assert not shares_a_box(caption("1", ("man", LEFT), ("horse", RIGHT)))


def test_captions_without_things() -> None:
    bare = GroundedCaption("1", (10, 10), "It is sunny.", (), -1.0)
    assert believable_section([bare], {"1": ["Sun."]}, replicates=0, seed=0).scores == {
        "shared_box": 0.0,
        "repeated_noun": 0.0,
    }
    with pytest.raises(DeixisError, match="no captions"):
        believable_section([], {}, replicates=0, seed=0)
