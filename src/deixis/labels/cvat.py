"""CVAT for images 1.1: one XML file; boxes that are ellipses, polygons or tracks are left out."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

from deixis.labels.raw import RawPhoto, RawThing, number_or_text, size_of

SIDES = ("xtl", "ytl", "xbr", "ybr")


def photos(root: Xml.Element, path: Path) -> list[RawPhoto]:
    """Return the photos of a file."""
    found = []
    for at, image in enumerate(root.iter("image")):
        photo = RawPhoto(image.get("name") or f"image {at}", f"{path}: image {at}")
        width, height = (number_or_text(image.get(side)) for side in ("width", "height"))
        photo.size = size_of(width, height)
        for number, box in enumerate(image.iter("box")):
            corners = [number_or_text(box.get(side)) for side in SIDES]
            photo.things.append(RawThing(box.get("label"), corners, f"{path}: image {at}, box {number}"))
        found.append(photo)
    return found
