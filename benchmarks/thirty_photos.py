"""Thirty photos that no model of ours has seen, gathered into a folder; what `lite` says of them is in the model card.

    python -m benchmarks.thirty_photos FOLDER --darknet GIT_DIR --opencv GIT_DIR
    deixis caption FOLDER

They were chosen before any model was asked about them: ten of scikit-image, four of ``examples/photos`` that are not
among those, four of pjreddie/darknet and twelve of opencv/opencv (``samples/data``), which are read out of clones.
None of them is in this repository but the examples.
"""

from __future__ import annotations

import argparse
import io
import subprocess
from collections.abc import Iterator
from pathlib import Path

import skimage
from PIL import Image

SKIMAGE = (
    "astronaut.png camera.png chelsea.png coffee.png coins.png "
    "grass.png horse.png motorcycle_left.png page.png rocket.jpg"
)
EXAMPLES = "raccoon.jpg temple.jpg flower.jpg officer.jpg"
DARKNET = "dog.jpg eagle.jpg person.jpg horses.jpg"
OPENCV = (
    "fruits.jpg baboon.jpg basketball1.png messi5.jpg home.jpg building.jpg "
    "butterfly.jpg apple.jpg aloeL.jpg leuvenA.jpg gauge-1.jpg cards.png"
)
LARGEST = 1024


def main() -> None:
    """Write the thirty photos as JPEG."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--darknet", type=Path, required=True, help="git directory of pjreddie/darknet")
    parser.add_argument("--opencv", type=Path, required=True, help="git directory of opencv/opencv")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name, data in photos(given.darknet, given.opencv):
        image = Image.open(io.BytesIO(data)).convert("RGB")
        image.thumbnail((LARGEST, LARGEST))
        image.save(given.folder / f"{Path(name).stem}.jpg", quality=92)
    print(f"{len(list(given.folder.glob('*.jpg')))} photos in {given.folder}")


def photos(darknet: Path, opencv: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each photo."""
    places = (
        (Path(skimage.__file__).parent / "data", SKIMAGE),
        (Path(__file__).parent.parent / "examples" / "photos", EXAMPLES),
    )
    for folder, names in places:
        for name in names.split():
            yield name, (folder / name).read_bytes()
    for repository, inside, names in ((darknet, "data", DARKNET), (opencv, "samples/data", OPENCV)):
        for name in names.split():
            command = ["git", f"--git-dir={repository}", "show", f"HEAD:{inside}/{name}"]
            yield name, subprocess.run(command, check=True, capture_output=True).stdout


if __name__ == "__main__":
    main()
