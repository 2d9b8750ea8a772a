from __future__ import annotations

from deixis.answering.several import with_further_boxes
from deixis.types import Box, GroundedPhrase

LEFT, RIGHT, SHIFTED = (0.0, 0.0, 10.0, 10.0), (20.0, 0.0, 30.0, 10.0), (1.0, 0.0, 11.0, 10.0)
PART, FAINT = (22.0, 2.0, 25.0, 5.0), (40.0, 0.0, 50.0, 10.0)


def phrase(*ranked: tuple[Box, float], found: bool = True) -> GroundedPhrase:
    boxes, scores = zip(*ranked, strict=True)
    return GroundedPhrase("dogs", (boxes[0],), (0,), 0.7, found, ranked=boxes, ranked_scores=scores)


def test_a_second_thing_gets_its_box_and_the_same_thing_does_not() -> None:
    # shares of .25 and above are half of the best's .5; the shifted box overlaps by 9/11, the part lies inside
    asked = phrase((LEFT, 0.5), (SHIFTED, 0.45), (RIGHT, 0.42), (PART, 0.41), (FAINT, 0.1))
    assert with_further_boxes(asked, 5).boxes == (LEFT, RIGHT)
    assert with_further_boxes(asked, 5).frames == (0, 0)
    assert with_further_boxes(asked, 5, share=0.2).boxes == (LEFT, RIGHT, FAINT)
    assert with_further_boxes(asked, 1) is asked


def test_what_is_not_there_keeps_its_one_box() -> None:
    asked = phrase((LEFT, 0.5), (RIGHT, 0.45), found=False)
    assert with_further_boxes(asked, 5) is asked
