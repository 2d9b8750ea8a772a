"""Draw the best proposals of photos with the word each is called, to look at: sheets of four photos.

    python -m benchmarks.proposals_drawn DATA -o FOLDER [--split val] [--photos 20] [--boxes 8] [--extractor lite:OLD]

Writes FOLDER/sheet-N.png, and prints the words photo by photo. Boxes are numbered by rank; a box is called by its two
most probable words. The photos are other people's: sheets are to be looked at, not to be passed on.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from deixis.data.locations import find
from deixis.data.open import open_dataset
from deixis.images import load_image
from deixis.regions.registry import build_extractor
from deixis.types import ImageFile, Regions

SIDE = 640
COLOURS = ("#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#008080", "#9a6324", "#000075")
LINE = 15


def named(regions: Regions, boxes: int) -> list[tuple[list[float], str]]:
    """The best boxes with their words; the whole photo, which is last, is not among them."""
    assert regions.word_probs is not None
    rows = range(min(boxes, len(regions) - 1))
    words = [[regions.word_names[word] for word in regions.word_probs[at].topk(2).indices.tolist()] for at in rows]
    return [(regions.boxes[at].tolist(), " ".join(two)) for at, two in zip(rows, words, strict=True)]


def drawn(photo: Image.Image, found: list[tuple[list[float], str]], title: str) -> Image.Image:
    """The photo, at most SIDE wide and high, with its boxes and a list of what they are called."""
    scale = SIDE / max(photo.size)
    small = photo.resize((round(photo.width * scale), round(photo.height * scale)))
    pen, font = ImageDraw.Draw(small), ImageFont.load_default(LINE)
    for number, (box, _) in reversed(list(enumerate(found, 1))):
        colour, corners = COLOURS[(number - 1) % len(COLOURS)], [scale * at for at in box]
        pen.rectangle(corners, outline=colour, width=3)
        pen.rectangle((corners[0], corners[1], corners[0] + 12 + 4 * (number > 9), corners[1] + LINE + 3), fill=colour)
        pen.text((corners[0] + 2, corners[1]), str(number), fill="white", font=font)
    sheet = Image.new("RGB", (SIDE, SIDE + 3 * LINE + 12), "white")
    sheet.paste(small, (0, 3 * LINE + 12))
    words = [f"{number} {word}" for number, (_, word) in enumerate(found, 1)]
    text, half = ImageDraw.Draw(sheet), (len(words) + 1) // 2
    for line, words_of_line in enumerate(([title], words[:half], words[half:])):
        text.text((4, 2 + line * (LINE + 3)), "   ".join(words_of_line), fill="black", font=font)
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--split", default="val")
    parser.add_argument("--photos", type=int, default=20)
    parser.add_argument("--boxes", type=int, default=8)
    parser.add_argument("--extractor", default="lite")
    options = parser.parse_args()
    extractor = build_extractor(options.extractor)
    options.output.mkdir(parents=True, exist_ok=True)
    sheets = []
    for example in islice(open_dataset(find(options.data, "data")).examples(options.split), options.photos):
        assert isinstance(example.source, ImageFile)
        photo = load_image(example.source.path)
        found = named(extractor.extract([np.asarray(photo)])[0], options.boxes)
        print(f"{example.id}: {', '.join(word for _, word in found)}")
        sheets.append(drawn(photo, found, example.id))
    for at in range(0, len(sheets), 4):
        page = Image.new("RGB", (2 * SIDE + 10, 2 * sheets[0].height + 10), "white")
        for place, sheet in enumerate(sheets[at : at + 4]):
            page.paste(sheet, (place % 2 * (SIDE + 10), place // 2 * (sheet.height + 10)))
        page.save(options.output / f"sheet-{at // 4 + 1}.png")


if __name__ == "__main__":
    main()
