"""Answers as files people look at: one page of all, and a PNG for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deixis.errors import DeixisError
from deixis.types import GroundedCaption, GroundedPhrases


def check_page(html: Path | None) -> None:
    """Refuse a page's name before any work is done: nothing is worse than an hour's answers without a place to go."""
    if html is not None and html.is_dir():
        raise DeixisError(f"{html} is a folder: give the page a name, such as {html / 'page.html'}")


def write_pictures(answers: Sequence[GroundedCaption | GroundedPhrases], *, html: Path | None, png: bool) -> list[Path]:
    """Write what was asked for and return the files' names; ``image`` of each answer is the path of its photo."""
    written: list[Path] = []
    if html is not None and answers:
        from deixis.export.page import write_page

        write_page(html, answers)
        written.append(html)
    if png:
        from deixis.export.draw import drawing_of
        from deixis.images import load_image

        names = png_names([answer.image for answer in answers])
        written += [
            drawing_of(answer, [load_image(Path(answer.image))]).save(Path(name))
            for answer, name in zip(answers, names, strict=True)
        ]
    return written


def png_names(images: Sequence[str]) -> list[str]:
    """Return a file name for each photo; photos of one name in several folders are numbered."""
    seen: dict[str, int] = {}
    names = []
    for image in images:
        stem = Path(image).stem
        seen[stem] = seen.get(stem, 0) + 1
        names.append(f"{stem}.deixis.png" if seen[stem] == 1 else f"{stem}-{seen[stem]}.deixis.png")
    return names
