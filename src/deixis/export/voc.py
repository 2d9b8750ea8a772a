"""Pascal VOC: an XML file a photo. Pixels count from 1 and the last one belongs to the box, as in the challenge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from xml.etree import ElementTree as Xml

from deixis.export.photos import PhotoBoxes, boxes_by_photo, file_of, xml_text
from deixis.export.things import Answer


def files(answers: Sequence[Answer]) -> dict[str, str]:
    """Return the texts of the files by their names. What is doubted is left out."""
    taken: dict[str, str] = {}
    return {file_of(photo.image, ".xml", taken, "voc"): _annotation(photo) for photo in boxes_by_photo(answers, "voc")}


def _annotation(photo: PhotoBoxes) -> str:
    root = Xml.Element("annotation")
    path = PurePath(photo.image)
    _texts(root, {"folder": path.parent.as_posix(), "filename": path.name})
    _texts(Xml.SubElement(root, "source"), {"database": "Deixis"})
    _texts(Xml.SubElement(root, "size"), {"width": photo.size[0], "height": photo.size[1], "depth": 3})
    _texts(root, {"segmented": 0})
    for thing in photo.things:
        item = Xml.SubElement(root, "object")
        _texts(item, {"name": thing.label, "pose": "Unspecified", "truncated": 0, "difficult": 0})
        x1, y1, x2, y2 = (round(side) for side in thing.box)
        corners = {"xmin": x1 + 1, "ymin": y1 + 1, "xmax": max(x2, x1 + 1), "ymax": max(y2, y1 + 1)}
        _texts(Xml.SubElement(item, "bndbox"), corners)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode") + "\n"


def _texts(parent: Xml.Element, values: Mapping[str, str | int]) -> None:
    for name, value in values.items():
        Xml.SubElement(parent, name).text = xml_text(str(value))
