"""Answers as files people look at: one page of all, and a PNG for each."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from deixis.types import GroundedCaption, GroundedPhrases


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


def write_page_of_clip(html: Path, clip: Path, answers: Sequence[GroundedCaption]) -> Path:
    """Write the page of a clip; one that browsers do not play is converted for it."""
    from deixis.export.clip import playable, write_playable_clip
    from deixis.export.page import write_clip_page

    if playable(clip):
        return write_clip_page(html, clip, answers)
    with tempfile.TemporaryDirectory() as folder:
        copy = write_playable_clip(Path(folder) / f"{clip.stem}.mp4", clip)
        return write_clip_page(html, copy, answers, title=clip.name, embed=True)


def png_names(images: Sequence[str]) -> list[str]:
    """Return a file name for each photo; photos of one name in several folders are numbered."""
    seen: dict[str, int] = {}
    names = []
    for image in images:
        stem = Path(image).stem
        seen[stem] = seen.get(stem, 0) + 1
        names.append(f"{stem}.deixis.png" if seen[stem] == 1 else f"{stem}-{seen[stem]}.deixis.png")
    return names
