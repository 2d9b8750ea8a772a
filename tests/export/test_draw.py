"""Drawings: colours match, labels can be read, boxes are where they should be, pages are safe."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
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
from deixis.types import (
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


def test_boxes_are_drawn_where_they_are() -> None:
    drawing = drawing_of_boxes(GREY, [((50, 25, 150, 75), "thing")])
    sheet = np.asarray(drawing.to_image(width=432)).astype(int)  # 400 pixels for the photo, so everything doubles
    first = np.abs(sheet - rgb(PALETTE[0])).sum(-1) < 12  # (H, W)
    edge = first[16 + 50 : 16 + 150, :]
    columns = np.flatnonzero(edge.mean(0) > 0.9)
    assert columns.min() == 16 + 100
    assert columns.max() == 16 + 300 - 1
    rows = np.flatnonzero(first[:, 16 + 150 : 16 + 300].mean(1) > 0.9)
    assert rows.max() == 16 + 150 - 1


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
        GroundedWord("ghost", 6, 11, ((0, 0, 9, 9),), (0,), 0.1, True, False),
    )
    drawing = drawing_of_caption(GroundedCaption("x", (200, 100), "a dog ghost", words), [GREY])
    assert [mark.label for mark in drawing.marks] == ["dog 0.90"]
    assert drawing.lines[0].spans == ((2, 5, "word 1"), (6, 11, ""))
    phrases = (
        GroundedPhrase("a dog", ((0, 0, 9, 9),), (0,), 0.8, True, 0, 5),
        GroundedPhrase("a cat", ((0, 0, 9, 9),), (0,), 0.1, False),
    )
    found = drawing_of_phrases(GroundedPhrases("x", (200, 100), phrases, "a dog here"), [GREY])
    assert [mark.label for mark in found.marks] == ["a dog 0.80"]
    assert [line.text for line in found.lines] == ["a dog here", "a cat"]


def test_clips_show_each_box_on_its_frame() -> None:
    mark = Mark("k", "ball", ((0, 0, 10, 10), (20, 20, 30, 30)), (0, 2))
    drawing = Drawing((GREY,) * 7, (mark,), (Line("A ball", ((2, 6, "k"),)),))
    assert [len(drawing.boxes_of(at)) for at in range(3)] == [1, 0, 1]
    sheet = drawing.to_image()
    assert sheet.width >= 5 * 300
    assert sheet.height > 2 * 150


def test_labels_stay_inside_and_apart() -> None:
    boxes = [((0.0, 0.0, 200.0, 100.0), f"label number {n}") for n in range(6)]
    sheet = drawing_of_boxes(GREY, boxes).to_image(width=900)
    assert sheet.width == 900


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


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.boxes: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "rect":
            self.boxes.append(dict(attrs))


def test_html_holds_the_boxes_and_escapes_every_text() -> None:
    evil = '<script>alert("x")</script>'
    mark = Mark("k", evil, ((10.0, 20.0, 60.0, 90.0),))
    page = Drawing((GREY,), (mark,), (Line(f"{evil} & a dog", ((0, len(evil), "k"),)),), evil).to_html()
    seen = _Seen()
    seen.feed(page)
    assert "script" not in seen.tags
    assert seen.tags.count("mark") == 1
    box = next(box for box in seen.boxes if box.get("class") == "box")
    assert (box["x"], box["y"], box["width"], box["height"]) == ("10.0", "20.0", "50.0", "70.0")
    assert "http" not in page, "nothing is fetched from elsewhere"


def test_saving(tmp_path: Path) -> None:
    drawing = drawing_of_boxes(GREY, [((0, 0, 10, 10), "x")])
    assert Image.open(drawing.save(tmp_path / "a.png")).format == "PNG"
    with pytest.raises(DeixisError, match=r"\.png or \.html"):
        drawing.save(tmp_path / "a.bmp")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        drawing.save(tmp_path / "file" / "a.png")
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "file"}
