"""Drawings of sentences and boxes in matching colours: what to draw, and where it comes from.

A :class:`Drawing` holds pictures (several for a clip), texts with coloured spans, and boxes with labels. It becomes a
PNG (:meth:`Drawing.to_image`) or one HTML file that needs nothing beside it (:meth:`Drawing.to_html`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image

from deixis.atomic import whole_file
from deixis.errors import DeixisError
from deixis.types.example import Example
from deixis.types.grounded import GroundedCaption, GroundedPhrases
from deixis.types.sentence import Box

PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442")
"""Okabe and Ito's colours, which people with any kind of colour vision can tell apart. Colour number 7 is the first
again with dashed lines, and so on; labels make sure that nothing rests on colour alone."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something with boxes: ``key`` gives the colour, equal keys have the same one."""

    key: str
    label: str
    boxes: tuple[Box, ...]
    frames: tuple[int, ...] = ()
    """Parallel to ``boxes``; empty means the first picture."""
    doubted: bool = False
    """The model does not believe in it: its boxes are shown only where one can ask for them, on a page."""
    presence: float | None = None
    """Probability that it is in the picture, where somebody asked."""
    sure: float | None = None
    """Probability that its box is the right one, where that is known."""

    @property
    def caption(self) -> str:
        """What stands at the box: the label, and how likely it is, or is rightly placed, where that is known."""
        share = self.sure if self.presence is None else self.presence
        return self.label if share is None else f"{self.label} {100 * share:.0f} %"


@dataclass(frozen=True, slots=True)
class Line:
    """A text under the pictures; each span is (start, end, key), with an empty key for words that have no box."""

    text: str
    spans: tuple[tuple[int, int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """Pictures, boxes and texts that belong together."""

    pictures: tuple[Image.Image, ...]
    marks: tuple[Mark, ...]
    lines: tuple[Line, ...] = ()
    title: str = ""
    size: tuple[int, int] | None = None
    """The width and height that boxes are given in, where the pictures are of another size."""

    def __post_init__(self) -> None:
        for picture in self.pictures:
            if not isinstance(picture, Image.Image):
                raise DeixisError(
                    f"a drawing is made on PIL images, not on {type(picture).__name__}: "
                    "deixis.images.load_image reads a path, bytes or an array"
                )

    @property
    def space(self) -> tuple[int, int]:
        """The width and height that boxes are given in."""
        return self.size or (self.pictures[0].size if self.pictures else (1, 1))

    @property
    def doubted(self) -> frozenset[str]:
        """The keys of what the model does not believe in."""
        return frozenset(mark.key for mark in self.marks if mark.doubted)

    @property
    def colours(self) -> dict[str, int]:
        """The colour number of each key, in the order of the texts and then of the marks."""
        boxed = {mark.key for mark in self.marks if mark.boxes}
        order = [key for line in self.lines for _, _, key in line.spans if key in boxed]
        order += [mark.key for mark in self.marks if mark.boxes]
        return {key: number for number, key in enumerate(dict.fromkeys(order))}

    def boxes_of(self, picture: int) -> list[tuple[str, str, Box]]:
        """Return (key, label, box) of all boxes of a picture, large ones first so that small ones stay visible."""
        found = [
            (mark.key, mark.caption, box)
            for mark in self.marks
            if not mark.doubted
            for box, frame in zip(mark.boxes, mark.frames or (0,) * len(mark.boxes), strict=True)
            if frame == picture
        ]
        return sorted(found, key=lambda item: -(item[2][2] - item[2][0]) * (item[2][3] - item[2][1]))

    def to_image(self, *, width: int = 960) -> Image.Image:
        """Draw everything into one picture."""
        from deixis.export.draw_png import draw

        return draw(self, width)

    def to_html(self) -> str:
        """Return one HTML page with the pictures inside; pointing at a phrase shows its boxes alone."""
        from deixis.export.page import page_text

        return page_text([self], title=self.title or "Deixis")

    def save(self, path: str | Path) -> Path:
        """Write a ``.png`` or ``.html`` file, under a temporary name first."""
        path = Path(path)
        kind = path.suffix.lower()
        if kind not in (".png", ".html"):
            raise DeixisError(f"a drawing is written as .png or .html, not as {path.name!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as part:
            if kind == ".png":
                self.to_image().save(part, format="PNG")
            else:
                part.write_text(self.to_html(), encoding="utf-8", errors="replace")
        return path


def drawing_of_example(example: Example, pictures: Sequence[Image.Image]) -> Drawing:
    """Draw an annotated example: its captions with their phrases; objects alone if no phrase has a box."""
    marks: dict[str, Mark] = {}
    lines = []
    for number, caption in enumerate(example.captions):
        spans = []
        for at, phrase in enumerate(caption.phrases):
            key = f"entity {phrase.entity}" if phrase.entity is not None else f"phrase {number}.{at}"
            text = caption.phrase_text(phrase)
            if phrase.boxes:
                # One entity may be named five times: its label is the first and shortest name.
                known = marks.get(key)
                if known is None:
                    marks[key] = Mark(key, text, phrase.boxes, phrase.frames)
                elif len(text) < len(known.label):
                    marks[key] = replace(known, label=text)
            spans.append((*caption.phrase_span(phrase), key if phrase.boxes else ""))
        lines.append(Line(caption.text, tuple(spans)))
    if not marks:
        for thing in example.objects:
            known = marks.get(thing.label) or Mark(thing.label, thing.label, ())
            marks[thing.label] = replace(known, boxes=(*known.boxes, thing.box), frames=(*known.frames, thing.frame))
    return Drawing(tuple(pictures), tuple(marks.values()), tuple(lines), example.id)


def drawing_of_caption(caption: GroundedCaption, pictures: Sequence[Image.Image]) -> Drawing:
    """Draw a generated caption; words that name nothing stay uncoloured, what the model doubts is marked as such."""
    if not isinstance(caption, GroundedCaption):
        raise DeixisError(f"this is no caption but {type(caption).__name__}: drawing_of draws answers of either kind")
    marks, spans = [], []
    for at, word in enumerate(caption.words):
        if not word.groundable:
            continue
        key = f"word {at}" if word.boxes else ""
        if key:
            marks.append(Mark(key, word.text, word.boxes, word.frames, not word.trusted, word.presence))
        spans.append((word.start, word.end, key))
    return Drawing(tuple(pictures), tuple(marks), (Line(caption.text, tuple(spans)),), caption.image, caption.size)


def drawing_of_phrases(phrases: GroundedPhrases, pictures: Sequence[Image.Image]) -> Drawing:
    """Draw phrases and where they were found; what is probably not in the image is marked as doubted."""
    if not isinstance(phrases, GroundedPhrases):
        raise DeixisError(f"these are no phrases but {type(phrases).__name__}: drawing_of draws answers of either kind")
    marks, spans, lines = [], [], []
    for at, phrase in enumerate(phrases.phrases):
        key = f"phrase {at}" if phrase.boxes else ""
        if key:
            sure = phrase.score if phrase.found else None  # of what is not there no box is right
            marks.append(Mark(key, phrase.text, phrase.boxes, phrase.frames, not phrase.found, sure=sure))
        if phrases.sentence is not None and phrase.start is not None and phrase.end is not None:
            spans.append((phrase.start, phrase.end, key))
        else:
            lines.append(Line(phrase.text, ((0, len(phrase.text), key),)))
    if phrases.sentence is not None:
        lines.insert(0, Line(phrases.sentence, tuple(spans)))
    return Drawing(tuple(pictures), tuple(marks), tuple(lines), phrases.image, phrases.size)


def drawing_of(answer: GroundedCaption | GroundedPhrases, pictures: Sequence[Image.Image] = ()) -> Drawing:
    """Draw an answer of either kind."""
    if isinstance(answer, GroundedCaption):
        return drawing_of_caption(answer, pictures)
    return drawing_of_phrases(answer, pictures)


def drawing_of_boxes(picture: Image.Image, boxes: Iterable[tuple[Box, str]], title: str = "") -> Drawing:
    """Draw labelled boxes, such as regions with their class; equal labels have equal colours."""
    marks: dict[str, Mark] = {}
    for box, label in boxes:
        known = marks.get(label) or Mark(label, label, ())
        marks[label] = replace(known, boxes=(*known.boxes, box))
    return Drawing((picture,), tuple(marks.values()), (), title)


def colour_of(number: int) -> tuple[str, bool]:
    """Return the colour with a number, and whether its lines are dashed: every second round is."""
    return PALETTE[number % len(PALETTE)], (number // len(PALETTE)) % 2 == 1


def ink_on(colour: str) -> str:
    """Return black or white, whichever reads better on a colour (WCAG's contrast ratio)."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "#ffffff"
