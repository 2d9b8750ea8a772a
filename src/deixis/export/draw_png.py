"""A drawing as one picture: boxes with labels that do not cover each other, and the texts below in the same colours."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

from deixis.export.draw import Drawing, Line, colour_of, ink_on
from deixis.types.sentence import Box

_GREY = "#e2e2e2"
_INK = "#222222"
_TALLEST = 1000
_GROW = 720
"""Photos smaller than this grow to it, so that labels have room; growing further would only blur them."""
_LONGEST_LABEL = 40

_Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Everything follows from the size of the picture, so that small and large ones read alike."""

    label: int
    text: int
    line: int
    margin: int

    @classmethod
    def of(cls, width: int, height: int, columns: int) -> _Sizes:
        label = max(12, round(0.021 * math.sqrt(width * height)))
        text = round(1.3 * label) if columns == 1 else 2 * label
        return cls(label, text, max(2, round(label / 5.5)), max(10, round(0.8 * text)))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A word, or the words of a span, as it stands in the sheet; ``glued`` to what comes before it."""

    text: str
    key: str | None
    glued: bool


def draw(drawing: Drawing, width: int) -> Image.Image:
    """Return a picture of at most about ``width``: the pictures in rows of up to five, the texts underneath."""
    columns = min(5, len(drawing.pictures)) or 1
    cell = (width if columns == 1 else max(width, 340 * columns)) // columns
    sizes_of = [_fitted(picture, cell - (32 if columns == 1 else 12)) for picture in drawing.pictures]
    widest = max((size[0] for size in sizes_of), default=cell)
    sizes = _Sizes.of(widest, max((size[1] for size in sizes_of), default=cell), columns)
    shown = [_boxed(drawing, at, size, sizes) for at, size in enumerate(sizes_of)]
    rows = [shown[at : at + columns] for at in range(0, len(shown), columns)]
    heights = [max(picture.height for picture in row) for row in rows]
    gap = sizes.margin if columns == 1 else sizes.margin // 2
    inner = columns * widest + (columns - 1) * gap
    if drawing.lines:
        inner = max(inner, 20 * sizes.text)  # a narrow photo must not squeeze its sentence
    text, text_height = _layout(drawing, inner, sizes)
    height = 2 * sizes.margin + sum(heights) + gap * max(0, len(heights) - 1)
    sheet = Image.new("RGB", (inner + 2 * sizes.margin, height + text_height), "white")
    y = sizes.margin
    for row, tall in zip(rows, heights, strict=True):
        for at, picture in enumerate(row):
            sheet.paste(picture, (sizes.margin + at * (widest + gap), y))
        y += tall + gap
    pen, font = ImageDraw.Draw(sheet), _font(sizes.text)
    y += sizes.margin - gap
    for x, down, word, colour in text:
        left, top = sizes.margin + x, y + down
        if colour is not None:
            edge = sizes.text // 6
            right, bottom = left + font.getlength(word) + edge, top + sizes.text + 2 * edge
            pen.rounded_rectangle((left - edge, top - edge, right, bottom), sizes.text // 4, colour)
        pen.text((left, top), word, fill=ink_on(colour) if colour else _INK, font=font)
    return sheet


def _fitted(picture: Image.Image, width: int) -> tuple[int, int]:
    factor = min(width / picture.width, _TALLEST / picture.height)
    if factor > 1:
        factor = min(factor, max(1.0, _GROW / max(picture.size)))
    return max(1, round(picture.width * factor)), max(1, round(picture.height * factor))


def _boxed(drawing: Drawing, at: int, size: tuple[int, int], sizes: _Sizes) -> Image.Image:
    """Return a picture at its drawn size, with its boxes and then, on top, their labels."""
    canvas = drawing.pictures[at].convert("RGB").resize(size, Image.Resampling.LANCZOS)
    pen = ImageDraw.Draw(canvas)
    across, down = size[0] / drawing.space[0], size[1] / drawing.space[1]
    colours = drawing.colours
    labels = []
    shown = drawing.boxes_of(at)
    for number, (key, label, box) in enumerate(shown):
        colour, dashed = colour_of(colours[key])
        scaled = _near((box[0] * across, box[1] * down, box[2] * across, box[3] * down), size, 2 * sizes.line)
        scaled = _inside(scaled, 2 * sizes.line * sum(_same(other, box) for _, _, other in shown[:number]))
        # A white hairline inside keeps the colour readable on any photo, and shows between the dashes.
        _rectangle(pen, scaled, "#ffffff", sizes.line + max(1, sizes.line // 3), dashed=False)
        _rectangle(pen, scaled, colour, sizes.line, dashed=dashed)
        labels.append((scaled, label, colour))
    font = _font(sizes.label)
    # Labels keep off each other and off small things, which they would hide.
    small = 0.04 * size[0] * size[1]
    keep = [(box, 1.0) for box, _, _ in labels if (box[2] - box[0]) * (box[3] - box[1]) < small]
    for box, label, colour in reversed(labels):
        keep.append((_label(pen, box, label, colour, font, size, keep), 4.0))
    return canvas


def _same(a: Box, b: Box) -> bool:
    """Whether two boxes would be drawn over each other: they overlap by nine tenths."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(0.0, width) * max(0.0, height)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return both >= 0.9 * (sum(areas) - both)


def _inside(box: Box, by: float) -> Box:
    """Return a box drawn a little smaller, so that one around the same thing stays visible around it."""
    x, y = min(by, (box[2] - box[0]) / 4), min(by, (box[3] - box[1]) / 4)
    return box[0] + x, box[1] + y, box[2] - x, box[3] - y


def _near(box: Box, size: tuple[int, int], margin: int) -> Box:
    """Return a box cut off a little outside the picture: a file may say that it ends a light-year from here."""
    x1, x2 = (min(max(side, -margin), size[0] + margin) for side in (box[0], box[2]))
    y1, y2 = (min(max(side, -margin), size[1] + margin) for side in (box[1], box[3]))
    return x1, y1, x2, y2


def _rectangle(pen: ImageDraw.ImageDraw, box: Box, colour: str, thick: int, *, dashed: bool) -> None:
    x1, y1, x2, y2 = box
    if not dashed:
        pen.rectangle((x1, y1, max(x1, x2 - 1), max(y1, y2 - 1)), outline=colour, width=thick)
        return
    for start, end in (((x1, y1), (x2, y1)), ((x2, y1), (x2, y2)), ((x2, y2), (x1, y2)), ((x1, y2), (x1, y1))):
        length = math.dist(start, end)
        for step in range(0, max(1, int(length)), 5 * thick):
            a, b = step / max(length, 1), min(step + 3 * thick, length) / max(length, 1)
            points = [(start[0] + (end[0] - start[0]) * t, start[1] + (end[1] - start[1]) * t) for t in (a, b)]
            pen.line(points, fill=colour, width=thick)


def _label(
    pen: ImageDraw.ImageDraw,
    box: Box,
    text: str,
    colour: str,
    font: _Font,
    size: tuple[int, int],
    keep: list[tuple[Box, float]],
) -> Box:
    """Write a label at its box where it hides least, and return the room it takes."""
    text = text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"
    while len(text) > 2 and pen.textlength(text, font=font) + 8 > size[0]:
        text = text[:-2] + "…"
    left, top, right, bottom = pen.textbbox((0, 0), text, font=font)
    # Letters of any word, not of this one: labels without a g are as high as those with one.
    top, bottom = (
        min(top, pen.textbbox((0, 0), "A", font=font)[1]),
        max(bottom, pen.textbbox((0, 0), "g", font=font)[3]),
    )
    width, height = right - left + 8, bottom - top + 6
    room = best_room(box, (width, height), size, keep)
    pen.rectangle(room, fill=colour, outline="#ffffff")
    pen.text((room[0] + 4 - left, room[1] + 3 - top), text, fill=ink_on(colour), font=font)
    return room


def best_room(box: Box, label: tuple[float, float], size: tuple[int, int], keep: list[tuple[Box, float]]) -> Box:
    """Return where at a box a label of width and height hides least of what is to be kept free, inside the picture.

    Above the upper left corner is best, then other corners, then further along and away from the edges.
    """
    (x1, y1, x2, y2), (width, height) = box, label
    places = [(x1, y1 - height), (x1, y1), (x2 - width, y1 - height), (x2 - width, y1), (x1, y2), (x2 - width, y2)]
    places += [(x2, y1), (x1 - width, y1), (x1, y2 - height), (x2 - width, y2 - height)]
    middle = (x1 + x2 - width) / 2
    places += [(middle, y1 - height), (middle, y2)]
    places += [(x, y1 + step * height) for step in (1, 2, 3, -2, -3, 4, 5) for x in (x1, x2 - width)]
    rooms = []
    for x, y in places:
        x, y = min(max(x, 0), max(0, size[0] - width)), min(max(y, 0), max(0, size[1] - height))
        rooms.append((x, y, x + width, y + height))
    return min(rooms, key=lambda room: sum(weight * _shared(room, other) for other, weight in keep))


def _shared(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _layout(drawing: Drawing, width: int, sizes: _Sizes) -> tuple[list[tuple[float, int, str, str | None]], int]:
    """Break the texts into lines; returns (x, y, piece, colour or None) for each piece, and the height."""
    font = _font(sizes.text)
    space, step, edge = font.getlength(" "), round(1.65 * sizes.text), sizes.text // 6
    colours, doubted = drawing.colours, drawing.doubted
    placed: list[tuple[float, int, str, str | None]] = []
    y = 0
    for line in drawing.lines:
        x = 0.0
        for piece in _pieces(line, font, width):
            plain = piece.key in doubted or piece.key not in colours
            colour = None if piece.key is None else _GREY if plain else colour_of(colours[piece.key])[0]
            text = piece.text + ("?" if piece.key in doubted else "")
            room = edge if colour else 0
            x += 0 if piece.glued or x == 0 else space
            if x > 0 and x + font.getlength(text) + 2 * room > width:
                x, y = 0.0, y + step
            placed.append((x + room, y, text, colour))
            x += font.getlength(text) + 2 * room
        y += step + sizes.text // 3
    return placed, y


def _pieces(line: Line, font: _Font, width: int) -> list[_Piece]:
    """Cut a line at its spans and spaces; a span stays whole if it fits. Spans inside earlier ones are left out."""
    parts: list[tuple[str, str | None]] = []
    at = 0
    for start, end, key in sorted(line.spans):
        if start < at:
            continue
        parts += [(line.text[at:start], None), (line.text[start:end], key)]
        at = end
    parts.append((line.text[at:], None))
    pieces = []
    open_ended = True  # nothing, or a space, came before
    for text, name in parts:
        whole = " ".join(text.split())
        words = [whole] if name is not None and font.getlength(whole) <= width else text.split()
        for number, word in enumerate(words):
            if word:
                pieces.append(_Piece(word, name, glued=number == 0 and not open_ended and not text[:1].isspace()))
        if text:
            open_ended = text[-1:].isspace()
    return pieces


def _font(size: int) -> _Font:
    return ImageFont.load_default(size)
