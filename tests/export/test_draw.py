"""Drawings: colours match, labels can be read, boxes are where they should be, pages are safe."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from deixis.data.sentences import sentence_with_phrases
from deixis.errors import DeixisError
from deixis.export.draw import (
    PALETTE,
    Drawing,
    Line,
    Mark,
    colour_of,
    drawing_of_boxes,
    drawing_of_caption,
    drawing_of_example,
    drawing_of_phrases,
    ink_on,
)
from deixis.export.draw_png import _font, _layout, _Sizes, best_room
from deixis.types import (
    Box,
    Example,
    GroundedCaption,
    GroundedPhrase,
    GroundedPhrases,
    GroundedWord,
    ImageFile,
    LabelledBox,
    Phrase,
)

GREY = Image.new("RGB", (200, 100), (128, 128, 128))


def rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def coloured(sheet: Image.Image, colour: str) -> tuple[int, int, int, int]:
    """Return the rectangle of all pixels of nearly a colour: left, top, right, bottom, inclusive."""
    near = np.abs(np.asarray(sheet).astype(int) - rgb(colour)).sum(-1) < 12  # (H, W)
    rows, columns = np.flatnonzero(near.any(1)), np.flatnonzero(near.any(0))
    return int(columns.min()), int(rows.min()), int(columns.max()), int(rows.max())


@pytest.mark.parametrize("size", [(200, 100), (50, 25), (4000, 2000)])
def test_boxes_are_drawn_where_they_are(size: tuple[int, int]) -> None:
    picture = Image.new("RGB", size, (128, 128, 128))
    width, height = size
    box = (width / 4, height / 4, width * 3 / 4, height * 3 / 4)
    bare = drawing_of_boxes(picture, []).to_image()
    sheet = drawing_of_boxes(picture, [(box, "thing")]).to_image()
    assert sheet.size == bare.size
    left, top, right, bottom = coloured(bare, "#808080")
    across, down = right + 1 - left, bottom + 1 - top
    found = coloured(sheet, PALETTE[0])
    # The label stands above the box, so only its left, right and lower edges are those of the box.
    assert found[0] == pytest.approx(left + across / 4, abs=1)
    assert found[2] == pytest.approx(left + across * 3 / 4 - 1, abs=1)
    assert found[3] == pytest.approx(top + down * 3 / 4 - 1, abs=1)


def test_boxes_given_for_another_size_are_scaled() -> None:
    picture = Image.new("RGB", (200, 100), (128, 128, 128))
    mark = Mark("k", "x", ((500.0, 250.0, 1500.0, 750.0),))
    same = Mark("k", "x", ((50.0, 25.0, 150.0, 75.0),))
    scaled = Drawing((picture,), (mark,), size=(2000, 1000)).to_image()
    assert np.array_equal(np.asarray(scaled), np.asarray(Drawing((picture,), (same,)).to_image()))


def test_entities_share_a_colour_across_captions() -> None:
    one = sentence_with_phrases("A man rides", [(0, 5, Phrase(0, 0, "7", boxes=((0, 0, 50, 50),), frames=(0,)))])[0]
    two = sentence_with_phrases(
        "Sky over him",
        [(0, 3, Phrase(0, 0, "8")), (9, 12, Phrase(0, 0, "7", boxes=((0, 0, 50, 50),), frames=(0,)))],
    )[0]
    drawing = drawing_of_example(Example("x", ImageFile(Path("x")), (200, 100), (one, two)), [GREY])
    assert [mark.label for mark in drawing.marks] == ["him"], "the shortest name labels the box"
    assert drawing.lines[0].spans == ((0, 5, "entity 7"),)
    assert drawing.lines[1].spans == ((0, 3, ""), (9, 12, "entity 7"))
    assert drawing.colours == {"entity 7": 0}


def test_objects_are_drawn_where_no_phrase_has_a_box() -> None:
    objects = (LabelledBox((0, 0, 10, 10), "dog"), LabelledBox((5, 5, 20, 20), "dog"), LabelledBox((0, 0, 5, 5), "cup"))
    drawing = drawing_of_example(Example("x", ImageFile(Path("x")), (200, 100), (), None, objects), [GREY])
    assert [(mark.label, len(mark.boxes)) for mark in drawing.marks] == [("dog", 2), ("cup", 1)]


def test_captions_and_phrases_of_models() -> None:
    words = (
        GroundedWord("a", 0, 1),
        GroundedWord("dog", 2, 5, ((0, 0, 9, 9),), (0,), 0.9, True),
        GroundedWord("ghost", 6, 11, ((0, 0, 9, 9),), (0,), 0.1, True, False, 0.2),
    )
    drawing = drawing_of_caption(GroundedCaption("x", (200, 100), "a dog ghost", words), [GREY])
    assert [(mark.caption, mark.doubted) for mark in drawing.marks] == [("dog", False), ("ghost 20 %", True)]
    assert drawing.lines[0].spans == ((2, 5, "word 1"), (6, 11, "word 2"))
    assert [label for _, label, _ in drawing.boxes_of(0)] == ["dog"], "what is doubted is not drawn"
    phrases = (
        GroundedPhrase("a dog", ((0, 0, 9, 9),), (0,), 0.8, True, 0, 5),
        GroundedPhrase("a cat", ((0, 0, 9, 9),), (0,), 0.1, False),
    )
    found = drawing_of_phrases(GroundedPhrases("x", (200, 100), phrases, "a dog here"), [GREY])
    assert [mark.caption for mark in found.marks] == ["a dog 80 %", "a cat"]
    assert found.doubted == {"phrase 1"}
    assert [line.text for line in found.lines] == ["a dog here", "a cat"]


def test_clips_show_each_box_on_its_frame() -> None:
    mark = Mark("k", "ball", ((0, 0, 10, 10), (20, 20, 30, 30)), (0, 2))
    drawing = Drawing((GREY,) * 7, (mark,), (Line("A ball", ((2, 6, "k"),)),))
    assert [len(drawing.boxes_of(at)) for at in range(3)] == [1, 0, 1]
    sheet = drawing.to_image()
    assert sheet.width >= 5 * 300
    assert sheet.height > 2 * 150


@given(
    st.lists(st.tuples(st.floats(0, 400), st.floats(0, 300)), max_size=8),
    st.tuples(st.floats(0, 380), st.floats(0, 280), st.floats(1, 200), st.floats(1, 200)),
)
def test_labels_stay_inside_the_picture(others: list[tuple[float, float]], box: tuple[float, ...]) -> None:
    keep = [((x, y, x + 60, y + 16), 4.0) for x, y in others]
    x1, y1, width, height = box
    room = best_room((x1, y1, x1 + width, y1 + height), (60, 16), (400, 300), keep)
    assert room[0] >= 0
    assert room[1] >= 0
    assert room[2] <= 400
    assert room[3] <= 300
    assert room[2] - room[0] == pytest.approx(60)


def test_labels_of_one_place_keep_apart() -> None:
    box = (100.0, 100.0, 300.0, 250.0)
    keep: list[tuple[Box, float]] = []
    for _ in range(10):
        room = best_room(box, (60, 16), (400, 300), keep)
        for other, _ in keep:
            across = min(room[2], other[2]) - max(room[0], other[0])
            down = min(room[3], other[3]) - max(room[1], other[1])
            assert across <= 0 or down <= 0, "ten labels at one box, none on another"
        keep.append((room, 4.0))


def test_a_sentence_is_set_as_it_is_written() -> None:
    doubt = Mark("k", "ghost", ((0.0, 0.0, 10.0, 10.0),), doubted=True)
    drawing = Drawing((GREY,), (doubt,), (Line("A ghost, here.", ((2, 7, "k"),)),))
    pieces, _ = _layout(drawing, 1000, _Sizes(12, 16, 2, 10))
    assert [text for _, _, text, _ in pieces] == ["A", "ghost?", ",", "here."]
    ends = {text: x + _font(16).getlength(text) for x, _, text, _ in pieces}
    comma = next(x for x, _, text, _ in pieces if text == ",")
    assert comma - ends["ghost?"] < _font(16).getlength(" "), "no space before a comma"


@pytest.mark.parametrize("size", [(1, 1), (3, 2000), (2000, 3), (40, 40), (6000, 4000)])
def test_any_shape_of_photo_can_be_drawn(size: tuple[int, int]) -> None:
    mark = Mark("k", "a label that is longer than the picture is wide", ((0.0, 0.0, float(size[0]), float(size[1])),))
    drawing = Drawing((Image.new("RGB", size, "grey"),), (mark,), (Line("A very narrow photo", ((2, 13, "k"),)),))
    sheet = drawing.to_image()
    assert 200 <= sheet.width <= 1100
    assert sheet.height <= 1300


def test_palette_is_told_apart_and_its_labels_are_readable() -> None:
    def luminance(colour: str) -> float:
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb(colour))]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    for colour in PALETTE:
        high, low = sorted((luminance(colour), luminance(ink_on(colour))), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, f"{colour} is hard to read on"
    for one, other in pairwise(PALETTE):
        assert np.abs(np.subtract(rgb(one), rgb(other))).sum() > 100
    assert colour_of(0) == (PALETTE[0], False)
    assert colour_of(len(PALETTE)) == (PALETTE[0], True), "the second round is dashed"


def test_saving(tmp_path: Path) -> None:
    drawing = drawing_of_boxes(GREY, [((0, 0, 10, 10), "x")])
    assert Image.open(drawing.save(tmp_path / "a.png")).format == "PNG"
    with pytest.raises(DeixisError, match=r"\.png or \.html"):
        drawing.save(tmp_path / "a.bmp")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        drawing.save(tmp_path / "file" / "a.png")
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "file"}


def test_two_things_with_one_box_both_show_their_colour() -> None:
    box = (20.0, 20.0, 180.0, 130.0)
    picture = Image.new("RGB", (200, 150), "#808080")
    marks = tuple(Mark(name, name, (box,)) for name in ("man", "rider"))
    drawn = Drawing((picture,), marks).to_image()
    alone = Drawing((picture,), marks[:1]).to_image()
    both, one = ({colour: count for count, colour in made.getcolors(1_000_000) or []} for made in (drawn, alone))
    first, second = (tuple(int(PALETTE[number][at : at + 2], 16) for at in (1, 3, 5)) for number in (0, 1))
    for colour in (first, second):
        assert both[colour] > 0.5 * one[first], "the frame of the one does not hide that of the other"


def test_what_cannot_be_drawn_is_refused_before_anything_is_saved() -> None:
    caption = GroundedCaption("x", (200, 100), "a dog", ())
    with pytest.raises(DeixisError, match="str"):
        drawing_of_caption(caption, ["photo.jpg"])  # type: ignore[list-item]
    with pytest.raises(DeixisError, match="GroundedPhrases"):
        drawing_of_caption(GroundedPhrases("x", (200, 100), ()), [GREY])  # type: ignore[arg-type]
