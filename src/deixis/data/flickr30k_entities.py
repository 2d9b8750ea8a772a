"""Flickr30k Entities: captions whose phrases carry chain ids, and boxes for the chains.

``Annotations/ID.xml`` has the size the annotators saw and objects with one or several chain ids; ``Sentences/ID.txt``
has a caption per line in the form ``[/EN#18/people A child] in a pink dress``. Photos may lie in ``images/`` or
``flickr30k-images/``, in any format and at any size: boxes are scaled to the file.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from deixis.data.boxes import usable_box
from deixis.data.dataset import UNKNOWN_ID, BadExampleError, Dataset
from deixis.data.files import EMPTY_CAPTION, MISSING_IMAGE, ImageFolder, first_folder, id_list
from deixis.data.images_of import file_size
from deixis.data.karpathy import karpathy_splits
from deixis.data.sentences import sentence_with_phrases
from deixis.errors import BadFileError
from deixis.reading.files import read_text
from deixis.reading.xml import read_xml
from deixis.types.example import Example, ImageFile, LabelledBox
from deixis.types.sentence import Box, Phrase, Sentence

BROKEN_XML = "broken XML"
BROKEN_SENTENCE = "broken sentence"
OTHER_SHAPE = "image of another shape than annotated"
EMPTY_PHRASE = "phrase without words"

IMAGE_FOLDERS = ("images", "flickr30k-images", "flickr30k_images", "Images")
_MAX_FILE = 16 * 2**20
# Every part begins with what the one before it cannot hold, so that no text is tried twice: a mark that never ends
# costs its length, not the square of it.
_MARK = re.compile(r"\[/EN#(?P<chain>[^\s/\[\]]++)(?P<types>(?:/[^\s/\[\]]++)*+)\s(?P<words>[^\[\]]*+)\]")


@dataclass(frozen=True, slots=True)
class Annotation:
    """One XML file: the annotated size and, for each object, its chain ids and its box (None for no box)."""

    size: tuple[int, int] | None
    objects: tuple[tuple[tuple[str, ...], tuple[float, float, float, float] | None], ...]


class Flickr30kEntities(Dataset):
    """Flickr30k Entities in its public layout, or any dataset written the same way."""

    format = "flickr30k-entities"
    many_files = True

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """Whether a path looks like this format."""
        return (path / "Annotations").is_dir() and (path / "Sentences").is_dir()

    @cached_property
    def _images(self) -> ImageFolder:
        return ImageFolder(first_folder(self.path, IMAGE_FOLDERS), self.problems)

    @cached_property
    def _split_ids(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, Sequence[str]] = {}
        for name in ("train", "val", "test"):
            if (self.path / f"{name}.txt").is_file():
                found[name] = id_list(self.path / f"{name}.txt")
        found |= {
            name: tuple(Path(file).stem for file in files)
            for name, files in karpathy_splits(self.path, "dataset_flickr30k.json").items()
        }
        if not found:
            found["all"] = tuple(sorted(file.stem for file in (self.path / "Sentences").glob("*.txt")))
        return found

    @property
    def splits(self) -> tuple[str, ...]:
        """``train``, ``val``, ``test`` from lists, ``karpathy-*`` from ``dataset_flickr30k.json``, or else ``all``."""
        return tuple(self._split_ids)

    def _ids_of(self, split: str) -> Sequence[str]:
        return self._split_ids[split]

    @cached_property
    def _split_of(self) -> dict[str, str]:
        return {id: split for split in reversed(self.splits) for id in self._split_ids[split]}

    def _read(self, id: str) -> Example:
        sentences, annotation = self.path / "Sentences" / f"{id}.txt", self.path / "Annotations" / f"{id}.xml"
        if Path(f"{id}.txt").name != f"{id}.txt" or not sentences.is_file():
            raise BadExampleError(UNKNOWN_ID, f"{self.path}: there is no example {id!r}: no {sentences}")
        marked = read_sentences(sentences)
        annotated = read_annotation(annotation) if annotation.is_file() else Annotation(None, ())
        source, size = self._source(id, annotated.size)
        objects, boxes = self._boxes(annotated, size, annotation)
        captions = tuple(
            caption
            for at, line in enumerate(marked, 1)
            if (caption := self._caption(line, boxes, f"{sentences}, line {at}")) is not None
        )
        return Example(id, source, size, captions, self._split_of.get(id), objects)

    def _source(self, id: str, annotated: tuple[int, int] | None) -> tuple[ImageFile, tuple[int, int] | None]:
        path = self._images.get(id)
        if path is None:
            if self._images.folder is not None:
                self.problems.note(MISSING_IMAGE, f"{self._images.folder / id}.*")
            return ImageFile((self._images.folder or self.path / IMAGE_FOLDERS[0]) / f"{id}.jpg"), annotated
        size = file_size(path, annotated, self.problems)
        if annotated is not None and size is not None:
            stretch = (size[0] * annotated[1]) / (size[1] * annotated[0])
            if not 0.95 < stretch < 1 / 0.95:
                shapes = f"{size[0]}x{size[1]}, annotated as {annotated[0]}x{annotated[1]}"
                self.problems.note(OTHER_SHAPE, f"{path} is {shapes}")
        return ImageFile(path), size

    def _boxes(
        self, annotation: Annotation, size: tuple[int, int] | None, file: Path
    ) -> tuple[tuple[LabelledBox, ...], dict[str, list[Box]]]:
        objects: list[LabelledBox] = []
        chains: dict[str, list[Box]] = {}
        for at, (names, value) in enumerate(annotation.objects, 1):
            if value is None:
                continue
            box = usable_box(value, annotation.size, size, self.problems, f"{file}, object {at}")
            if box is not None:
                objects.append(LabelledBox(box, names[0]))
                for name in dict.fromkeys(names):
                    chains.setdefault(name, []).append(box)
        return tuple(objects), chains

    def _caption(self, line: str, boxes: Mapping[str, list[Box]], place: str) -> Sentence | None:
        text, marks = unmark(line, place)
        if not text.strip():
            self.problems.note(EMPTY_CAPTION, place)
            return None
        phrases = []
        for start, end, chain, types in marks:
            visual = chain != "0" and "notvisual" not in types
            own = tuple(boxes.get(chain, ())) if visual else ()
            phrases.append((start, end, Phrase(0, 0, chain, types, own, (0,) * len(own), visual=visual)))
        sentence, empty = sentence_with_phrases(text, phrases)
        for words in empty:
            self.problems.note(EMPTY_PHRASE, f"{place}: {words!r}")
        return sentence


def read_sentences(path: Path) -> list[str]:
    """Return the caption lines of a sentence file; the end of the last line is not a caption."""
    try:
        lines = read_text(path, limit=_MAX_FILE).split("\n")
    except BadFileError as error:
        raise BadExampleError(BROKEN_SENTENCE, str(error)) from error
    return lines[:-1] if not lines[-1].strip() else lines


def unmark(line: str, place: str) -> tuple[str, list[tuple[int, int, str, tuple[str, ...]]]]:
    """Return the caption without markup, and for each phrase (start, end, chain id, types).

    >>> unmark("[/EN#18/people A child] sleeps .", "here")
    ('A child sleeps .', [(0, 7, '18', ('people',))])
    """
    parts: list[str] = []
    length = at = 0
    phrases = []
    for mark in _MARK.finditer(line):
        before, words = line[at : mark.start()], " ".join(mark["words"].split())
        parts += before, words
        start = length + len(before)
        length = start + len(words)
        types = tuple(name for name in mark["types"].split("/") if name)
        phrases.append((start, length, mark["chain"], types))
        at = mark.end()
    parts.append(line[at:])
    text = "".join(parts)
    if "/EN#" in text:
        column = line.find("[/EN#", at) + 1 or line.find("/EN#") + 1
        raise BadExampleError(
            BROKEN_SENTENCE, f"{place}, column {column}: a phrase that does not end, or inside another"
        )
    return text.rstrip(), phrases


def read_annotation(path: Path) -> Annotation:
    """Read one XML file. Document types are refused, and with them every kind of entity trick."""
    try:
        root = read_xml(path, limit=_MAX_FILE)
        return _annotation(root, path)
    except BadFileError as error:
        raise BadExampleError(BROKEN_XML, str(error)) from error


def _annotation(root: ET.Element, path: Path) -> Annotation:
    size = root.find("size")
    annotated = None
    if size is not None:
        width, height = (_number(size, key, f"{path}, size") for key in ("width", "height"))
        if width < 1 or height < 1:
            raise BadFileError(f"{path}: size {width:g}x{height:g} is not the size of an image")
        annotated = (int(width), int(height))
    objects: list[tuple[tuple[str, ...], Box | None]] = []
    for at, item in enumerate(root.iter("object"), 1):
        place = f"{path}, object {at}"
        names = tuple(name.text.strip() for name in item.findall("name") if name.text and name.text.strip())
        if not names:
            raise BadFileError(f"{place} has no <name>, so no phrase can point at it")
        found = item.findall("bndbox")
        if not found:
            objects.append((names, None))
        for box in found:
            x1, y1, x2, y2 = (_number(box, key, place) for key in ("xmin", "ymin", "xmax", "ymax"))
            objects.append((names, (x1, y1, x2, y2)))
    return Annotation(annotated, tuple(objects))


def _number(element: ET.Element, key: str, place: str) -> float:
    text = element.findtext(key)
    try:
        value = float(text or "")
    except ValueError:
        value = float("nan")
    if not -1e9 < value < 1e9:
        raise BadFileError(f"{place}: <{key}> should be a number, not {text!r}"[:400])
    return value
