"""What `make demo` shows: example photos captioned by `lite`, the words pointing at boxes, as a page and as pictures.

``DEIXIS_MODEL`` names another model, such as a run folder.
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import numpy as np
import torch

import deixis
from deixis.cli.main import main
from deixis.errors import DeixisError
from deixis.export.draw import drawing_of_boxes, drawing_of_caption
from deixis.export.page import write_page
from deixis.images import load_image
from deixis.regions.lite import load_lite
from deixis.types import GroundedCaption

PHOTOS = Path(__file__).parent / "photos"
OUT = Path(__file__).parents[1] / "demo"
BEST = 9


def run(*arguments: str) -> None:
    """Show a command as one would type it, and run it."""
    print(f"\n$ deixis {shlex.join(arguments)}")
    try:
        main(list(arguments))
    except SystemExit as left:
        if left.code:
            raise


def show_captions(model: str) -> None:
    """Caption the photos, check what was said, find a phrase, and write everything as a page and as pictures."""
    lines = OUT / "captions.jsonl"
    lines.unlink(missing_ok=True)
    photos = [os.path.relpath(photo) for photo in sorted(PHOTOS.glob("*.jpg"))]
    page = os.path.relpath(OUT / "photos.html")
    named = [] if model == "lite" else ["--model", model]
    run("caption", *photos, *named, "--html", page, "-o", os.path.relpath(lines))
    for line in lines.read_text(encoding="utf-8").splitlines():
        caption = GroundedCaption.from_json(json.loads(line))
        drawing_of_caption(caption, [load_image(Path(caption.image))]).save(OUT / f"{Path(caption.image).stem}.png")
    run("ground", os.path.relpath(PHOTOS / "coffee.jpg"), "a spoon", "a red saucer", "an elephant", *named)
    run("export", os.path.relpath(lines), "--format", "coco", "-o", os.path.relpath(OUT / "captions.coco.json"))


def show_regions() -> None:
    """Draw the best regions of each photo, with the caption word that fits each best."""
    drawings = []
    for photo in sorted(PHOTOS.glob("*.jpg")):
        picture = load_image(photo)
        regions = load_lite().extract([np.asarray(picture)])[0]
        assert regions.word_probs is not None
        words = [regions.word_names[at] for at in regions.word_probs[:BEST].argmax(1).tolist()]
        boxes = [(x1, y1, x2, y2) for x1, y1, x2, y2 in regions.boxes[:BEST].tolist()]
        drawings.append(drawing_of_boxes(picture, zip(boxes, words, strict=True), photo.name))
        drawings[-1].save(OUT / f"{photo.stem}.png")
        print(f"{photo.name}: {len(regions)} regions; the best {BEST} look like {', '.join(words)}")
    write_page(OUT / "photos.html", drawings, title="Regions of the example photos")


torch.set_num_threads(1)  # small pictures: a second thread only costs
OUT.mkdir(exist_ok=True)
model = os.environ.get("DEIXIS_MODEL", "lite")
try:
    deixis.load(model)
except DeixisError as error:
    print(f"There is no captioner to show yet ({error}).\nHere is what the region extractor sees instead:\n")
    show_regions()
else:
    show_captions(model)
print("\nLook at:")
for file in [OUT / "photos.html", *sorted(OUT / f"{photo.stem}.png" for photo in PHOTOS.glob("*.jpg"))]:
    print(f"  {os.path.relpath(file)}")
print("In the page, point at a word (or use the Tab key) and its box lights up.")
