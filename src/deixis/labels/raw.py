"""What label files say, as they say it: photos by some name, boxes in some unit. ``read.py`` makes sense of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from deixis.errors import BadFileError
from deixis.reading.files import read_bytes


@dataclass(frozen=True, slots=True)
class RawThing:
    """A box with its class, and the words of a sentence that name it where the file knows them."""

    label: Any
    corners: Sequence[Any]
    """x1 y1 x2 y2 in pixels of the size the file gives, or as shares of the photo (``RawPhoto.shares``)."""
    place: str
    """File and spot, for messages."""
    phrase: str | None = None
    sentence: str | None = None
    span: tuple[int, int] | None = None
    score: float | None = None
    trusted: bool = True
    """False for a box that our draft itself doubts."""


@dataclass(slots=True)
class RawPhoto:
    """A photo as a file calls it, its boxes, and whether somebody has looked at it."""

    name: str
    place: str
    size: tuple[int, int] | None = None
    shares: bool = False
    reviewed: bool = True
    marked: bool = False
    """Whether its file tells photos that are done from others; else all of them count as done."""
    doubt: float = 0.0
    """How much it needs a look, 0 to 1, where the file says so."""
    things: list[RawThing] = field(default_factory=list)


def read_xml(path: Path) -> Xml.Element:
    """Parse an XML file; declarations of entities, with which small files grow without bound, are refused."""
    data = read_bytes(path)
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise BadFileError(f"{path} declares a document type or entities, which label files do not need: refused")
    try:
        return Xml.fromstring(data)
    except (Xml.ParseError, ValueError) as error:
        raise BadFileError(f"{path} is not XML: {error}") from error


def number_or_text(text: str | None) -> Any:
    """Return what a number is written as, or the text itself, which is then no usable side of a box."""
    try:
        return float(text or "")
    except ValueError:
        return text
