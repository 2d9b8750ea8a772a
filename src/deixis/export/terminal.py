"""Answers in a terminal: sentences with coloured words, small pictures of half blocks, lists of boxes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from deixis.export.draw import Drawing, colour_of, drawing_of, ink_on
from deixis.types import Box, GroundedCaption, GroundedPhrases

if TYPE_CHECKING:
    from PIL import Image

Answer = GroundedCaption | GroundedPhrases
COLUMNS, ROWS = 64, 24
"""The largest small picture, in characters; a character is two pixels high."""
DOUBTED = Style(strike=True, dim=True)


def answer_console(picture: bool | None) -> Console:
    """Return the console for answers; a picture that was asked for is drawn whatever the terminal says it can."""
    if picture:
        return Console(highlight=False, force_terminal=True, color_system="truecolor")
    return Console(highlight=False)


def shows_pictures(console: Console, asked: bool | None) -> bool:
    """Whether pictures are shown: as asked, else where the terminal shows colours finely enough."""
    return console.is_terminal and console.color_system == "truecolor" if asked is None else asked


def print_answer(console: Console, answer: Answer, *, heading: bool, picture: bool) -> None:
    """Print an answer: heading, picture, text, and the boxes of every thing with their scores."""
    from deixis.images import load_image

    if heading:
        console.print(Text(answer.image, style="bold"), soft_wrap=True)
    drawing = drawing_of(answer)
    if picture:
        console.print(half_blocks(load_image(Path(answer.image)), drawing), soft_wrap=True, no_wrap=True)
    if isinstance(answer, GroundedCaption) or answer.sentence is not None:
        console.print(coloured(drawing), soft_wrap=True)
    for line in rows(answer, drawing):
        console.print(line, soft_wrap=True)


def coloured(drawing: Drawing) -> Text:
    """Return the first text of a drawing, its things in their colours; doubtful ones are struck out."""
    line = drawing.lines[0]
    text, colours = Text(line.text), drawing.colours
    for start, end, key in line.spans:
        sure = key in colours and key not in drawing.doubted
        text.stylize(thing_style(colours[key]) if sure else DOUBTED, start, end)
    return text


def thing_style(number: int) -> Style:
    """Return the terminal's colours of the thing with a number."""
    colour = colour_of(number)[0]
    return Style(color=ink_on(colour), bgcolor=colour)


def rows(answer: Answer, drawing: Drawing) -> list[Text]:
    """Return a line for every thing: its name, its box, its score, and what the grounder thinks of it."""
    things: list[tuple[str, str, tuple[Box, ...], float | None, str]] = []
    if isinstance(answer, GroundedCaption):
        for at, word in enumerate(answer.words):
            if word.groundable:
                there = "" if word.presence is None else f"there: {word.presence:.2f}"
                doubt = "" if word.trusted else "doubtful"
                things.append(
                    (f"word {at}", word.text, word.boxes, word.score, "  ".join(filter(None, (there, doubt))))
                )
    else:
        for at, phrase in enumerate(answer.phrases):
            key = f"phrase {at}"
            if phrase.found:
                things.append((key, phrase.text, phrase.boxes, phrase.score, ""))
            else:  # the box and score it would have if it were there only mislead; --json has them
                things.append((key, phrase.text, (), None, "probably not in the photo"))
    width = max((cell_len(name) for _, name, _, _, _ in things), default=0)
    lines = []
    for key, name, boxes, score, remark in things:
        sides = " ".join(f"{side:.0f}" for side in boxes[0]) if boxes else "-"
        number = drawing.colours.get(key)
        style = DOUBTED if number is None or key in drawing.doubted else thing_style(number)
        line = Text("  ").append(name, style)
        numbers = "" if score is None else f"{sides:<22}{score:.2f}  "
        lines.append(line.append(f"{'':{width - cell_len(name) + 2}}{numbers}{remark}".rstrip()))
    return lines


def half_blocks(image: Image.Image, drawing: Drawing, columns: int = COLUMNS, rows: int = ROWS) -> Text:
    """Return a small picture with its boxes: each character is two pixels, the upper one its ink."""
    from PIL import Image, ImageDraw

    factor = min(columns / image.width, 2 * rows / image.height)
    width, height = max(1, round(image.width * factor)), max(2, round(image.height * factor) // 2 * 2)
    small = image.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
    pen = ImageDraw.Draw(small)
    for key, _, (x1, y1, x2, y2) in drawing.boxes_of(0):
        corners = [x1 * width / image.width, y1 * height / image.height]
        corners += [min(x2 * width / image.width, width) - 1, min(y2 * height / image.height, height) - 1]
        corners[2], corners[3] = max(corners[0], corners[2]), max(corners[1], corners[3])
        pen.rectangle(corners, outline=colour_of(drawing.colours[key])[0])
    colours = [[Color.from_rgb(*pixel) for pixel in row] for row in np.asarray(small).tolist()]
    text = Text()
    for row in range(0, height, 2):
        for upper, lower in zip(colours[row], colours[row + 1], strict=True):
            text.append("▀", Style(color=upper, bgcolor=lower))
        text.append("\n" if row + 2 < height else "")
    return text
