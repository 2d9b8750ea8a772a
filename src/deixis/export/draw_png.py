"""A drawing as one picture: boxes with labels that do not cover each other, and the texts below in the same colours."""

from __future__ import annotations

import math
import re

from PIL import Image, ImageDraw, ImageFont

from deixis.export.draw import Drawing, Line, colour_of, ink_on
from deixis.types.sentence import Box

_MARGIN = 16
_TEXT = 19
_GREY = "#e2e2e2"


def draw(drawing: Drawing, width: int) -> Image.Image:
    """Return a picture of about ``width``: the pictures in rows of up to five, the texts underneath."""
    columns = min(5, len(drawing.pictures)) or 1
    if columns > 1:
        width = max(width, 320 * columns)
    cell = (width - _MARGIN * (columns + 1)) // columns
    shown = [_boxed(drawing, at, cell) for at in range(len(drawing.pictures))]
    rows = [shown[at : at + columns] for at in range(0, len(shown), columns)]
    heights = [max(picture.height for picture in row) for row in rows]
    text, text_height = _layout(drawing, width - 2 * _MARGIN)
    height = _MARGIN + sum(h + _MARGIN for h in heights) + text_height + (_MARGIN if text_height else 0)
    sheet = Image.new("RGB", (width, height), "white")
    y = _MARGIN
    for row, tall in zip(rows, heights, strict=True):
        for at, picture in enumerate(row):
            sheet.paste(picture, (_MARGIN + at * (cell + _MARGIN), y))
        y += tall + _MARGIN
    pen = ImageDraw.Draw(sheet)
    font = _font(_TEXT)
    for x, line_y, word, colour in text:
        left, top = _MARGIN + x, y + line_y
        if colour is not None:
            pen.rounded_rectangle((left - 3, top - 3, left + font.getlength(word) + 3, top + _TEXT + 5), 4, colour)
        pen.text((left, top), word, fill=ink_on(colour) if colour else "#222222", font=font)
    return sheet


def _boxed(drawing: Drawing, at: int, width: int) -> Image.Image:
    """Return a picture at its drawn size, with its boxes and then, on top, their labels."""
    picture = drawing.pictures[at]
    # Small photos grow, so that labels have room; a tall photo must not become taller than a screen.
    factor = min(width / picture.width, 900 / picture.height)
    size = max(1, round(picture.width * factor)), max(1, round(picture.height * factor))
    canvas = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    pen = ImageDraw.Draw(canvas)
    thick = 3 if width > 400 else 2
    colours = drawing.colours
    labels = []
    for key, label, box in drawing.boxes_of(at):
        colour, dashed = colour_of(colours[key])
        scaled = (
            box[0] * size[0] / picture.width,
            box[1] * size[1] / picture.height,
            box[2] * size[0] / picture.width,
            box[3] * size[1] / picture.height,
        )
        # A white hairline inside keeps the colour readable on any photo, and shows between the dashes.
        _rectangle(pen, scaled, "#ffffff", thick + 1, dashed=False)
        _rectangle(pen, scaled, colour, thick, dashed=dashed)
        labels.append((scaled, label, colour))
    font = _font(15 if width > 400 else 12)
    # Labels keep off each other and off small things, which they would hide.
    small = 0.04 * size[0] * size[1]
    keep = [(box, 1.0) for box, _, _ in labels if (box[2] - box[0]) * (box[3] - box[1]) < small]
    for box, label, colour in reversed(labels):
        keep.append((_label(pen, box, label, colour, font, size, keep), 4.0))
    return canvas


def _rectangle(pen: ImageDraw.ImageDraw, box: Box, colour: str, thick: int, *, dashed: bool) -> None:
    x1, y1, x2, y2 = box
    if not dashed:
        pen.rectangle((x1, y1, max(x1, x2 - 1), max(y1, y2 - 1)), outline=colour, width=thick)
        return
    for start, end in (((x1, y1), (x2, y1)), ((x2, y1), (x2, y2)), ((x2, y2), (x1, y2)), ((x1, y2), (x1, y1))):
        length = math.dist(start, end)
        for step in range(0, max(1, int(length)), 16):
            a, b = step / max(length, 1), min(step + 9, length) / max(length, 1)
            points = [(start[0] + (end[0] - start[0]) * t, start[1] + (end[1] - start[1]) * t) for t in (a, b)]
            pen.line(points, fill=colour, width=thick)


def _label(
    pen: ImageDraw.ImageDraw,
    box: Box,
    text: str,
    colour: str,
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
    size: tuple[int, int],
    keep: list[tuple[Box, float]],
) -> Box:
    """Write a label at the corner of its box where it hides least, and return the room it takes."""
    text = text if len(text) <= 40 else text[:39] + "…"
    left, top, right, bottom = pen.textbbox((0, 0), text, font=font)
    width, height = right - left + 8, bottom - top + 6
    x1, y1, x2, y2 = box
    corners = [(x1, y1 - height), (x1, y1), (x2 - width, y1 - height), (x2 - width, y1), (x1, y2), (x2 - width, y2)]
    corners += [(x2, y1), (x1 - width, y1), (x1, y2 - height), (x2 - width, y2 - height), (x1, y1 - 2 * height)]
    rooms = []
    for x, y in corners:
        x, y = min(max(x, 0), max(0, size[0] - width)), min(max(y, 0), max(0, size[1] - height))
        rooms.append((x, y, x + width, y + height))
    room = min(
        rooms, key=lambda room: sum(weight * _shared(room, other) for other, weight in keep)
    )  # the first of equals
    pen.rectangle(room, fill=colour, outline="#ffffff")
    pen.text((room[0] + 4 - left, room[1] + 3 - top), text, fill=ink_on(colour), font=font)
    return room


def _shared(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _layout(drawing: Drawing, width: int) -> tuple[list[tuple[float, int, str, str | None]], int]:
    """Break the texts into lines; returns (x, y, piece, colour or None) for each piece, and the height."""
    font = _font(_TEXT)
    space, step = font.getlength(" "), _TEXT + 12
    colours = drawing.colours
    placed: list[tuple[float, int, str, str | None]] = []
    y = 0
    for line in drawing.lines:
        x = 0.0
        for piece, key in _pieces(line):
            colour = None if key is None else colour_of(colours[key])[0] if key in colours else _GREY
            for word in [piece] if key is not None and font.getlength(piece) <= width else piece.split():
                length, room = font.getlength(word), 3 if colour else 0
                if x > 0 and x + length + 2 * room > width:
                    x, y = 0.0, y + step
                placed.append((x + room, y, word, colour))
                x += length + 2 * room + space
        y += step + 6
    return placed, y


def _pieces(line: Line) -> list[tuple[str, str | None]]:
    """Cut a line at its spans: (text, key) with key None outside of spans. Spans inside earlier ones are left out."""
    pieces: list[tuple[str, str | None]] = []
    at = 0
    for start, end, key in sorted(line.spans):
        if start < at:
            continue
        pieces += [(line.text[at:start], None), (line.text[start:end], key)]
        at = end
    pieces.append((line.text[at:], None))
    return [(re.sub(r"\s+", " ", text).strip(), key) for text, key in pieces if text.strip()]


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
