"""Kosmos-2's way to write a grounded sentence: phrases in tags, boxes as two cells of a grid of 32 by 32.

``<grounding> a<phrase> dog</phrase><object><patch_index_0044><patch_index_0863></object>``: the first number is the
cell of the upper left corner, the second that of the lower right one, counted row by row (Peng et al., *Kosmos-2:
Grounding Multimodal Large Language Models to the World*, 2023, section 2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from deixis.export.things import Answer, Thing, only_photos, relative, text_of, things_of
from deixis.types.sentence import Box

BINS = 32


def records(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """Return for each answer its plain text, the text with tags, and the entities with boxes as shares of the image.

    Phrases that stand alone are joined by commas.
    """
    found = []
    for answer in only_photos(answers, "kosmos"):
        text, things = _sentence(answer)
        entities = [
            [text[start:end], [start, end], [list(relative(thing.box, answer.size)) for thing in boxes]]
            for (start, end), boxes in things
        ]
        found.append(
            {
                "image": answer.image,
                "size": list(answer.size),
                "caption": text,
                "grounded": _tagged(text, things, answer.size),
                "entities": entities,
            }
        )
    return found


def patches(box: Box, size: tuple[int, int]) -> tuple[int, int]:
    """Return the cells of a box's upper left and lower right corner; a box thinner than a cell still has one."""
    x1, y1, x2, y2 = (side * BINS for side in relative(box, size))
    left, top = min(math.floor(x1), BINS - 1), min(math.floor(y1), BINS - 1)
    right, bottom = max(math.ceil(x2) - 1, left), max(math.ceil(y2) - 1, top)
    return top * BINS + left, bottom * BINS + right


_Placed = list[tuple[tuple[int, int], list[Thing]]]


def _sentence(answer: Answer) -> tuple[str, _Placed]:
    """Return the text without what would read as tags, and its things by span, each character in at most one."""
    grouped: dict[int, list[Thing]] = {}
    for thing in things_of(answer):
        grouped.setdefault(thing.number, []).append(thing)
    text = text_of(answer)
    placed: _Placed = []
    if text is None:
        text = ""
        for boxes in grouped.values():
            text += ", " if text else ""
            placed.append(((len(text), len(text) + len(boxes[0].text)), boxes))
            text += boxes[0].text
    else:
        at = 0
        for boxes in sorted(grouped.values(), key=lambda boxes: boxes[0].span or (0, 0)):
            span = boxes[0].span
            if span is not None and at <= span[0] < span[1]:
                placed.append((span, boxes))
                at = span[1]
    # Same length, so spans stay true; the reader takes everything in angle brackets for a tag.
    return text.replace("<", "‹").replace(">", "›"), placed


def _tagged(text: str, things: _Placed, size: tuple[int, int]) -> str:
    parts, at = ["<grounding> "], 0
    for (start, end), boxes in things:
        # The space before a phrase belongs inside its tag, as the model writes it.
        space = " " if start > at and text[start - 1] == " " else ""
        cells = [patches(thing.box, size) for thing in boxes]
        places = "</delimiter_of_multi_objects/>".join(
            f"<patch_index_{first:04d}><patch_index_{last:04d}>" for first, last in cells
        )
        parts += [text[at : start - len(space)], f"<phrase>{space}{text[start:end]}</phrase><object>{places}</object>"]
        at = end
    return "".join(parts) + text[at:]
