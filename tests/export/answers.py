"""Answers for the tests of this room: hand-made ones, and whatever hypothesis thinks of."""

from __future__ import annotations

from hypothesis import strategies as st

from deixis.types import Box, GroundedCaption, GroundedPhrase, GroundedPhrases, GroundedWord

EVIL = "</script><img src=x onerror=\"document.title='owned'\">"


def caption(image: str, text: str, boxes: dict[str, Box], size: tuple[int, int] = (200, 100)) -> GroundedCaption:
    """Return a caption whose named words have the boxes."""
    words, at = [], 0
    for part in text.split():
        at = text.index(part, at)
        box = boxes.get(part)
        words.append(GroundedWord(part, at, at + len(part), (box,) if box else (), (0,) if box else (), 0.5, bool(box)))
        at += len(part)
    return GroundedCaption(image, size, text, tuple(words), -0.5, "lite")


DOG = caption("photos/dog.jpg", "two dogs chase a ball", {"dogs": (20, 10, 120, 90), "ball": (150, 60, 170, 80)})
PHRASES = GroundedPhrases(
    "photos/cat.png",
    (64, 48),
    (
        GroundedPhrase("a red hat", ((0, 0, 32, 24),), (0,), 0.9, True, 5, 14),
        GroundedPhrase("a ghost", ((10, 10, 20, 20),), (0,), 0.1, False, 18, 25),
    ),
    "See: a red hat on a ghost",
    "lite",
)
CLIP = GroundedCaption(
    "v_abc_segment_03",
    (320, 240),
    "a man rides",
    (
        GroundedWord("a", 0, 1),
        GroundedWord("man", 2, 5, ((0, 0, 50, 100), (10, 0, 60, 100)), (0, 4), 0.7, True),
        GroundedWord("rides", 6, 11),
    ),
    segment=(3.0, 8.0),
    frame_times=tuple(3.25 + 0.5 * at for at in range(10)),
)


@st.composite
def boxes(draw: st.DrawFn, size: tuple[int, int]) -> Box:
    """A box that may stick out of the image, and may be as thin as a line."""
    side = st.floats(-0.2, 1.2, allow_nan=False)
    x1, x2 = sorted(draw(side) * size[0] for _ in range(2))
    y1, y2 = sorted(draw(side) * size[1] for _ in range(2))
    return x1, y1, x2, y2


@st.composite
def captions(draw: st.DrawFn, names: st.SearchStrategy[str] | None = None) -> GroundedCaption:
    """A caption of a photo with words of any script."""
    size = draw(st.integers(1, 4000)), draw(st.integers(1, 4000))
    parts = draw(
        st.lists(st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=8), max_size=6)
    )
    words, text = [], ""
    for part in parts:
        text += " " if text else ""
        found = tuple(draw(st.lists(boxes(size), max_size=2)))
        score = draw(st.floats(0, 1))
        word = GroundedWord(part, len(text), len(text) + len(part), found, (0,) * len(found), score)
        groundable, trusted = draw(st.booleans()), draw(st.booleans())
        words.append(GroundedWord(part, word.start, word.end, found, word.frames, score, groundable, trusted))
        text += part
    anything = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
    name = draw(anything if names is None else names)
    return GroundedCaption(name, size, text, tuple(words), draw(st.floats(-9, 0)), "lite")
