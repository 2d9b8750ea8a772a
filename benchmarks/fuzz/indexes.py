"""A search index of the example photos, as ``deixis search`` keeps it, and how it is read."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from random import Random

import deixis
from deixis.answering.load import Deixis
from deixis.answering.search.index import PhotoIndex

EXAMPLES = Path(__file__).parents[2] / "examples" / "photos"


@cache
def model() -> Deixis:
    """Return the model that ships, once in each process."""
    return deixis.load()


def index(root: Path) -> None:
    """Two photos and their index."""
    (root / "photos").mkdir()
    for name in ("chelsea.jpg", "coffee.jpg"):
        shutil.copyfile(EXAMPLES / name, root / "photos" / name)
    PhotoIndex(model(), root / "photos", root / "index").update()


def mend_index(root: Path, rng: Random) -> None:
    """Let the index fit the model and the folder again, so that what else was damaged is looked at."""
    file = root / "index" / "index.json"
    data = json.loads(file.read_bytes())
    good = PhotoIndex(model(), root / "photos", root / "none").manifest
    data |= {"format": 1, "fingerprint": good.fingerprint, "folder": good.folder, "words": list(good.words)}
    file.write_text(json.dumps(data))


def read_index(root: Path) -> None:
    """Open the index, search it, and bring it up to date."""
    found = PhotoIndex(model(), root / "photos", root / "index")
    found.search("a cat", top=1, candidates=2)
    found.update()
