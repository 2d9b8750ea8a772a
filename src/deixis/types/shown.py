"""How results behave in a notebook: they show themselves, and are drawn, saved and handed to other tools by a method.

What draws them lies in a room below this one (``deixis.export.notebook``), which is imported when a result is looked
at: results know that they can be shown, not how.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import supervision as sv
    from PIL import Image

_DRAWS = "deixis.export.notebook"


class Shown:
    """A caption or phrases of one photo. ``photo`` is needed where the photo cannot be found by its name any more."""

    __slots__ = ()

    def draw(self, photo: Any = None, *, width: int = 960) -> Image.Image:
        """Return the photo, ``width`` pixels wide, with its boxes, and the text below."""
        drawn: Image.Image = self._drawn("draw", photo, width=width)
        return drawn

    def show(self, photo: Any = None) -> None:
        """Show the answer: in a notebook with words that light up their boxes, elsewhere as a picture in a window."""
        self._drawn("show", photo)

    def save(self, path: str | Path, photo: Any = None) -> Path:
        """Write the answer: ``.html`` (a page that opens offline), ``.png`` (a picture) or ``.json`` (our form)."""
        saved: Path = self._drawn("save", photo, path=Path(path))
        return saved

    def to_supervision(self) -> sv.Detections:
        """Return the boxes as ``supervision.Detections`` (the extra ``supervision``)."""
        detections: sv.Detections = import_module("deixis.export.supervision").to_detections(self)
        return detections

    def _repr_html_(self) -> str | None:
        """Return what a notebook shows, or None where the photo is not to be had: then it shows the text."""
        shown: str | None = self._drawn("html_or_none", None)
        return shown

    def _drawn(self, how: str, photo: Any, **options: Any) -> Any:
        return getattr(import_module(_DRAWS), how)(self, photo, **options)
