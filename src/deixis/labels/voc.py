"""Pascal VOC: an XML file a photo; pixels count from 1 and the last one belongs to the box."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from xml.etree import ElementTree as Xml

from deixis.labels.raw import RawPhoto, RawThing, number_or_text, size_of
from deixis.reading.xml import read_xml


def photos(path: Path) -> list[RawPhoto]:
    """Return the photos of a folder of files, or of one file."""
    files = sorted(path.rglob("*.xml")) if path.is_dir() else [path]
    root = path if path.is_dir() else path.parent
    return [_photo(file, root, read_xml(file)) for file in files]


def _photo(file: Path, root: Path, note: Xml.Element) -> RawPhoto:
    below = file.relative_to(root).parent
    ending = PurePosixPath(note.findtext("filename") or file.name).suffix
    photo = RawPhoto((below / file.name).with_suffix(ending).as_posix(), str(file))
    width, height = (number_or_text(note.findtext(f"size/{side}")) for side in ("width", "height"))
    photo.size = size_of(width, height)
    for at, item in enumerate(note.iter("object")):
        x1, y1, x2, y2 = (number_or_text(item.findtext(f"bndbox/{side}")) for side in ("xmin", "ymin", "xmax", "ymax"))
        first = [side - 1 if isinstance(side, float) else side for side in (x1, y1)]
        photo.things.append(RawThing(item.findtext("name"), [*first, x2, y2], f"{file}: object {at}"))
    return photo
