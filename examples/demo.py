"""What `make demo` shows: an example photo with its phrases, and the regions that `lite` finds and names in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from deixis.cli.main import main
from deixis.export.draw import drawing_of_boxes
from deixis.images import load_image
from deixis.regions.lite import load_lite

HERE = Path(__file__).parent
OUT = HERE.parent / "demo"
BEST = 9


def run(*arguments: str) -> None:
    """Show a command as one would type it, and run it."""
    print(f"\n$ deixis {' '.join(arguments)}")
    try:
        main(list(arguments))
    except SystemExit as left:
        if left.code:
            raise


def draw_regions(photo: Path, out: Path) -> None:
    """Draw the best regions of a photo, each with the caption word that fits it best."""
    picture = load_image(photo)
    regions = load_lite().extract([np.asarray(picture)])[0]
    assert regions.word_probs is not None
    words = [regions.word_names[at] for at in regions.word_probs[:BEST].argmax(1).tolist()]
    boxes = [(x1, y1, x2, y2) for x1, y1, x2, y2 in regions.boxes[:BEST].tolist()]
    drawing_of_boxes(picture, zip(boxes, words, strict=True)).save(out)
    print(f"\n{photo.name}: {len(regions)} regions; the best {BEST} look like {', '.join(words)}\ndrawn to {out}")


torch.set_num_threads(1)  # small pictures: a second thread only costs
OUT.mkdir(exist_ok=True)
photos = HERE / "photos"
run("data", "info", str(photos))
run("data", "show", str(photos), "astronaut", "-o", str(OUT / "astronaut.png"))
run("data", "show", str(photos), "astronaut", "-o", str(OUT / "astronaut.html"))
for name in ("chelsea", "coffee"):
    draw_regions(photos / f"{name}.jpg", OUT / f"{name}-regions.png")
print(f"\nOpen {OUT / 'astronaut.html'} in a browser: point at a word and its box lights up.")
