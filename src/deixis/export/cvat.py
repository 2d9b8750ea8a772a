"""CVAT: the XML of "CVAT for images 1.1", which a task with these photos and labels imports."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from deixis.export.photos import boxes_by_photo, xml_text
from deixis.export.things import Answer, labels_in


def document(answers: Sequence[Answer]) -> str:
    """Return the file. What is doubted is left out: attributes would have to be declared in the task first."""
    root = Xml.Element("annotations")
    Xml.SubElement(root, "version").text = "1.1"
    labels = Xml.SubElement(Xml.SubElement(Xml.SubElement(root, "meta"), "task"), "labels")
    for name in labels_in(answers, doubtful=True):
        label = Xml.SubElement(labels, "label")
        Xml.SubElement(label, "name").text = xml_text(name)
        Xml.SubElement(label, "attributes")
    for number, photo in enumerate(boxes_by_photo(answers, "cvat")):
        width, height = map(str, photo.size)
        facts = {"id": str(number), "name": xml_text(photo.image), "width": width, "height": height}
        image = Xml.SubElement(root, "image", facts)
        for thing in photo.things:
            sides = dict(zip(("xtl", "ytl", "xbr", "ybr"), (f"{side:.2f}" for side in thing.box), strict=True))
            shared = {"label": xml_text(thing.label), "source": "auto", "occluded": "0", "z_order": "0"}
            Xml.SubElement(image, "box", shared | sides)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"
