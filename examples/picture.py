"""What `make picture` does: run the Python of the README with the model in the package, and renew what it shows.

The output below the snippet is replaced by what the snippet prints, and `docs/images/answer.jpg` is drawn again: two
lines of work after new weights. `DEIXIS_MODEL` names another model for the picture.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

from PIL import Image

import deixis
from deixis.export.draw import drawing_of_caption
from deixis.images import load_image

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PHOTO = Path("examples/photos/coffee.jpg")
PICTURE = Path("docs/images/answer.jpg")
SNIPPET = re.compile(r"(```python\n(?P<code>.*?)```\n+```\n)(?P<output>.*?)(```\n)", re.DOTALL)


def main() -> None:
    """Renew the output and the picture of the README."""
    os.chdir(ROOT)
    readme = README.read_text(encoding="utf-8")
    found = SNIPPET.search(readme)
    if found is None:
        raise SystemExit("README.md has no Python snippet with its output below")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(found["code"], {})
    README.write_text(
        readme[: found.start("output")] + said.getvalue() + readme[found.end("output") :], encoding="utf-8"
    )
    print(said.getvalue(), end="")
    draw()
    print(f"wrote {README.name} and {PICTURE}")


def draw() -> None:
    """Draw what the model says of the photo, with its doubts."""
    answer = deixis.load(os.environ.get("DEIXIS_MODEL", "lite")).caption(PHOTO)
    drawn = PICTURE.with_suffix(".png")
    drawing_of_caption(answer, [load_image(PHOTO)]).save(drawn)
    with Image.open(drawn) as image:
        image.convert("RGB").save(PICTURE, quality=88)
    drawn.unlink()


if __name__ == "__main__":
    main()
