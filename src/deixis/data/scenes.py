"""Drawn scenes with captions and exact boxes: a free dataset, made in a second, to try everything without photos.

A scene is a place (meadow, beach, snow or street) with two or three things in it: people in coloured shirts, dogs,
balls, cars, trees, houses. Three captions name them, and every phrase knows its box. The same seed draws the same
scenes. They show that training runs and learns; they say nothing of how good a method is on photos.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

from deixis.atomic import require_new_folder, whole_folder
from deixis.errors import DeixisError

SIZE = (320, 240)
HORIZON = 120
SPLITS = ("train", "val", "test")

COLOURS = {
    "red": (214, 40, 40),
    "blue": (38, 84, 200),
    "yellow": (244, 206, 40),
    "green": (40, 150, 70),
    "white": (246, 246, 246),
    "black": (30, 30, 34),
    "brown": (130, 82, 44),
    "orange": (242, 130, 32),
}
PLACES = {  # name: sky, ground, how a caption says it
    "meadow": ((150, 205, 245), (112, 176, 84), "on the grass"),
    "beach": ((176, 222, 250), (232, 208, 150), "on the beach"),
    "snow": ((196, 208, 222), (240, 244, 250), "in the snow"),
    "street": ((186, 190, 200), (120, 120, 126), "on the street"),
}
NOUNS = ("man", "woman", "shirt", "dog", "ball", "car", "tree", "house")
"""What phrases of scenes name."""
SKIN = (226, 178, 140)

Box = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Thing:
    """Something in a scene: the phrase that names it, its box, and the phrase and box of what it wears, if anything."""

    phrase: str
    box: Box
    category: str | None = None
    """What COCO calls it, if it is one of COCO's eighty things."""
    wears: tuple[str, Box] | None = None


def make_scenes(folder: Path, counts: Mapping[str, int], seed: int = 0) -> int:
    """Draw scenes for each split into a dataset of the ``folder`` format; return how many phrases have boxes.

    Args:
        folder: Where the dataset goes; it must not exist yet, or be empty. It appears only when complete.
        counts: How many scenes of each split: train, val, test.
        seed: Another seed draws other scenes.
    """
    for split, count in counts.items():
        if split not in SPLITS:
            raise DeixisError(f"scenes are drawn for {', '.join(SPLITS)}, not {split!r}")
        if count < 1:
            raise DeixisError(f"{split} should have at least one scene, not {count}")
    require_new_folder(folder, "the scenes")
    with whole_folder(folder) as work:
        return sum(_write_split(work / split, split, count, seed) for split, count in counts.items())


def _write_split(folder: Path, split: str, count: int, seed: int) -> int:
    folder.mkdir()
    boxed = 0
    with (folder / "metadata.jsonl").open("w", encoding="utf-8") as lines:
        for at in range(count):
            image, captions, phrases, things = draw_scene(random.Random(f"{seed}/{split}/{at}"))
            name = f"scene-{at:04d}.png"
            image.save(folder / name)
            record: dict[str, object] = {"file_name": name, "id": f"{split}-{at:04d}", "captions": captions}
            known = [(thing.category, thing.box) for thing in things if thing.category]
            boxes = [[x1, y1, x2 - x1, y2 - y1] for _, (x1, y1, x2, y2) in known]
            record |= {
                "phrases": phrases,
                "objects": {"bbox": boxes, "categories": [category for category, _ in known]},
            }
            lines.write(json.dumps(record) + "\n")
            boxed += len(phrases)
    return boxed


def draw_scene(rng: random.Random) -> tuple[Image.Image, list[str], list[dict[str, object]], list[Thing]]:
    """Draw one scene; return it with its captions, their phrases as ``metadata.jsonl`` holds them, and its things."""
    sky, ground, where = rng.choice(list(PLACES.values()))
    image = Image.new("RGB", SIZE, sky)
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, HORIZON, *SIZE), fill=ground)
    behind = rng.choice([None, _tree, _house])
    scenery = behind(draw, rng, rng.randrange(20, 300)) if behind else None
    left, right = (_THINGS[kind] for kind in rng.sample(list(_THINGS), 2))
    things = [left(draw, rng, rng.randrange(60, 110)), right(draw, rng, rng.randrange(210, 260))]
    captions, phrases = [], []
    for at, said in enumerate(_captions(things, scenery, where, rng)):
        text = ""
        for part in said:
            piece, box = part if isinstance(part, tuple) else (part, None)
            start = len(text) + bool(text)
            text = f"{text} {piece}".strip()
            if box is not None:
                phrases.append({"caption": at, "start": start, "end": len(text), "boxes": [list(box)]})
        captions.append(text[0].upper() + text[1:])
    return image, captions, phrases, things


Said = list[str | tuple[str, Box]]


def _captions(things: list[Thing], scenery: Thing | None, where: str, rng: random.Random) -> list[Said]:
    """Three captions: both things, one thing with what it wears, and what stands behind."""
    first, second = rng.sample(things, 2)
    beside = rng.choice(["next to", "beside", "near"])
    verb = "stands" if first.wears else "is"
    both: Said = [(first.phrase, first.box), verb, beside, (second.phrase, second.box), f"{where} ."]
    worn: Said = ["in", first.wears] if first.wears else []
    single: Said = [(first.phrase, first.box), *worn, f"is {where} ."]
    pair: Said = [(things[0].phrase, things[0].box), "and", (things[1].phrase, things[1].box)]
    last: Said = [*pair, "in front of", (scenery.phrase, scenery.box), "."] if scenery else [*pair, f"{where} ."]
    return [both, single, last]


def _coloured(rng: random.Random, *names: str) -> tuple[str, tuple[int, int, int]]:
    name = rng.choice(names or tuple(COLOURS))
    return name, COLOURS[name]


def _person(noun: str) -> Callable[[ImageDraw.ImageDraw, random.Random, int], Thing]:
    def person(draw: ImageDraw.ImageDraw, rng: random.Random, x: int) -> Thing:
        name, colour = _coloured(rng, "red", "blue", "yellow", "green", "white", "black")
        tall = rng.randrange(96, 120)
        foot = rng.randrange(200, 230)
        top, head = foot - tall, tall // 5
        shirt = (x - 18, top + head, x + 18, top + tall * 3 // 5)
        trousers = rng.choice([(50, 60, 90), (90, 80, 70)])
        if noun == "woman":  # a skirt and long hair
            draw.polygon([(x, shirt[3] - 20), (x - 22, foot - 16), (x + 22, foot - 16)], fill=trousers)
            draw.rectangle((x - head // 2 - 4, top, x + head // 2 + 4, top + head + 12), fill=(90, 50, 20))
        for side in (-1, 1):
            draw.rectangle((x + side * 9 - 5, shirt[3], x + side * 9 + 5, foot), fill=trousers)
            draw.rectangle((x + side * 22 - 4, shirt[1] + 4, x + side * 22 + 4, shirt[3] - 6), fill=SKIN)
        draw.rectangle(shirt, fill=colour)
        draw.ellipse((x - head // 2, top, x + head // 2, top + head), fill=SKIN)
        shirt_box = (f"a {name} shirt", _open(shirt))
        return Thing(f"a {noun}", (x - 26, top, x + 27, foot + 1), "person", shirt_box)

    return person


def _dog(draw: ImageDraw.ImageDraw, rng: random.Random, x: int) -> Thing:
    name, colour = _coloured(rng, "brown", "black", "white")
    foot, long = rng.randrange(196, 230), rng.randrange(30, 42)
    top = foot - 48
    draw.ellipse((x - long, top + 14, x + long - 8, foot - 14), fill=colour)  # body
    draw.ellipse((x + long - 22, top, x + long + 8, top + 28), fill=colour)  # head
    draw.polygon([(x + long - 18, top + 4), (x + long - 12, top - 8), (x + long - 6, top + 4)], fill=colour)  # ear
    draw.line((x - long + 4, top + 24, x - long - 8, top + 8), fill=colour, width=5)  # tail
    for leg in (-long + 12, -long + 26, long - 34, long - 20):
        draw.rectangle((x + leg - 4, foot - 22, x + leg + 4, foot), fill=colour)
    return Thing(f"a {name} dog", (x - long - 10, top - 8, x + long + 9, foot + 1), "dog")


def _ball(draw: ImageDraw.ImageDraw, rng: random.Random, x: int) -> Thing:
    name, colour = _coloured(rng, "red", "blue", "yellow", "green", "orange")
    radius, foot = rng.randrange(14, 26), rng.randrange(190, 230)
    box = (x - radius, foot - 2 * radius, x + radius, foot)
    draw.ellipse(box, fill=colour, outline=(60, 60, 60), width=2)
    return Thing(f"{_article(name)} {name} ball", _open(box), "sports ball")


def _car(draw: ImageDraw.ImageDraw, rng: random.Random, x: int) -> Thing:
    name, colour = _coloured(rng, "red", "blue", "yellow", "green", "white", "orange")
    foot = rng.randrange(180, 226)
    draw.rectangle((x - 48, foot - 34, x + 48, foot - 8), fill=colour)
    draw.polygon([(x - 30, foot - 34), (x - 20, foot - 56), (x + 18, foot - 56), (x + 30, foot - 34)], fill=colour)
    draw.rectangle((x - 18, foot - 52, x + 16, foot - 36), fill=(200, 226, 240))
    for wheel in (-28, 28):
        draw.ellipse((x + wheel - 11, foot - 22, x + wheel + 11, foot), fill=(26, 26, 26))
    return Thing(f"{_article(name)} {name} car", (x - 48, foot - 56, x + 49, foot + 1), "car")


def _tree(draw: ImageDraw.ImageDraw, rng: random.Random, x: int) -> Thing:
    foot, wide = HORIZON + rng.randrange(10, 24), rng.randrange(30, 40)
    draw.rectangle((x - 6, foot - 50, x + 6, foot), fill=(104, 70, 40))
    draw.ellipse((x - wide, foot - 118, x + wide, foot - 40), fill=(36, 110, 50))
    return Thing("a tree", (max(x - wide, 0), foot - 118, min(x + wide + 1, SIZE[0]), foot + 1))


def _house(draw: ImageDraw.ImageDraw, rng: random.Random, x: int) -> Thing:
    name, colour = _coloured(rng, "red", "white", "yellow", "brown")
    foot, wide = HORIZON + rng.randrange(6, 16), rng.randrange(44, 60)
    draw.rectangle((x - wide, foot - 60, x + wide, foot), fill=colour)
    draw.polygon([(x - wide - 8, foot - 60), (x, foot - 104), (x + wide + 8, foot - 60)], fill=(96, 52, 44))
    draw.rectangle((x - 10, foot - 32, x + 10, foot), fill=(70, 46, 30))
    box = (max(x - wide - 8, 0), foot - 104, min(x + wide + 9, SIZE[0]), foot + 1)
    return Thing(f"a {name} house", box)


def _open(box: Box) -> Box:
    """From pixels that PIL fills, both ends included, to edges."""
    return box[0], box[1], box[2] + 1, box[3] + 1


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


_THINGS: dict[str, Callable[[ImageDraw.ImageDraw, random.Random, int], Thing]] = {
    "man": _person("man"),
    "woman": _person("woman"),
    "dog": _dog,
    "ball": _ball,
    "car": _car,
}
