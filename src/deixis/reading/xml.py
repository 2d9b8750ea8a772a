"""XML of strangers as a tree: no entities, no document types, and no deeper than annotations are."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from deixis.errors import BadFileError
from deixis.reading.files import read_text

MAX_DEPTH = 100
"""A tree of millions of levels costs gigabytes, and no annotation has more than a few."""
_CHUNK = 2**16


def read_xml(path: Path, limit: int | None = None) -> Xml.Element:
    """Return the root of an XML file; whatever is wrong with it is told with the file and, where known, the line.

    The file is read as UTF-8 whatever it declares, so a document type cannot hide in another encoding.

    Args:
        path: The file.
        limit: Most bytes; else those of any text.
    """
    text = read_text(path) if limit is None else read_text(path, limit=limit)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise BadFileError(f"{path} declares a document type or an entity: annotations need neither")
    try:
        return _parsed(text, path)
    except Xml.ParseError as error:
        line, column = error.position
        raise BadFileError(f"{path}, line {line}, column {column}: broken XML: {error.msg.split(':')[0]}") from error
    except ValueError as error:  # a null character, a lone surrogate
        raise BadFileError(f"{path}: broken XML: {error}") from error


def _parsed(text: str, path: Path) -> Xml.Element:
    depth = 0
    parser: Any = Xml.XMLPullParser(("start", "end"))
    root: Xml.Element | None = None
    for at in range(0, len(text), _CHUNK):
        parser.feed(text[at : at + _CHUNK])
        for event, element in parser.read_events():
            root = element if root is None else root
            depth += 1 if event == "start" else -1
            if depth > MAX_DEPTH:
                raise BadFileError(f"{path} is nested more than {MAX_DEPTH} deep: annotations are not")
    parser.close()
    if root is None:
        raise ValueError("it has no element")
    return root
