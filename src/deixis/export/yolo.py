"""YOLO: a text file a photo with a line a box (class, centre, width, height, as shares of the photo), and the classes.

To train with them, put the photos beside ``labels/`` into ``images/``, under the same names.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from deixis.export.photos import boxes_by_photo, file_of
from deixis.export.things import Answer, labels_in, relative


def files(answers: Sequence[Answer]) -> dict[str, str]:
    """Return the texts of the files by their names. What is doubted is left out: there is no place to say so."""
    classes = labels_in(answers, doubtful=True)
    number = {name: at for at, name in enumerate(classes)}
    names = "".join(f"  {at}: {json.dumps(name, ensure_ascii=False)}\n" for at, name in enumerate(classes))
    where = "# made by deixis: the photos belong into images/\npath: .\ntrain: images\nval: images\n"
    texts = {
        "classes.txt": "".join(f"{' '.join(name.split())}\n" for name in classes),
        "data.yaml": f"{where}names:\n{names}",
    }
    taken: dict[str, str] = {}
    for photo in boxes_by_photo(answers, "yolo"):
        lines = []
        for thing in photo.things:
            x1, y1, x2, y2 = relative(thing.box, photo.size)
            sides = (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1
            lines.append(f"{number[thing.label]} {' '.join(f'{side:.6f}' for side in sides)}\n")
        texts[f"labels/{file_of(photo.image, '.txt', taken, 'yolo')}"] = "".join(lines)
    return texts
