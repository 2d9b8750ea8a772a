"""Read label files of any of the tools against the photos they are about; what does not fit is noted, not guessed.

A photo that is gone, a box outside it, a class that is not in the list: each is noted with its place, and left out or
cut. A photo that was made smaller or larger takes its boxes along; one with another shape is another photo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from deixis.data.boxes import usable_box
from deixis.data.dataset import Problems
from deixis.data.files import DUPLICATE_ID, MISSING_IMAGE
from deixis.data.images_of import BROKEN_IMAGE, file_size
from deixis.data.photo_folder import names_of, photos_below
from deixis.errors import BadFileError, DeixisError
from deixis.export.review import doubt
from deixis.export.things import read_answers, text_of, things_of
from deixis.labels import coco, cvat, labelstudio, voc, yolo
from deixis.labels.raw import RawPhoto, RawThing
from deixis.reading.plain import read_json
from deixis.reading.xml import read_xml
from deixis.types import Box

RESIZED = "photo of another size: boxes were scaled"
OTHER_SHAPE = "photo of another shape: cut or replaced since"
NO_LABEL = "box without a label that its file knows"
SAME_SHAPE = 0.02
"""Ratios of width to height that differ by less are those of one photo at two sizes, rounded to pixels."""


@dataclass(frozen=True, slots=True)
class LabelledThing:
    """A box in pixels of the photo, its class, and the words of a caption that name it, where there are any."""

    label: str
    box: Box
    phrase: str | None = None
    sentence: str | None = None
    span: tuple[int, int] | None = None
    score: float | None = None
    trusted: bool = True


@dataclass(frozen=True, slots=True)
class PhotoLabels:
    """A photo by its path below the folder, its size, and its boxes."""

    image: str
    size: tuple[int, int]
    things: tuple[LabelledThing, ...]
    reviewed: bool = True
    doubt: float = 0.0


@dataclass(frozen=True, slots=True)
class Labels:
    """What a label file says about the photos of a folder."""

    path: Path
    format: str
    photos: dict[str, PhotoLabels]
    """By their path below the folder."""
    unreviewed: int
    marked: bool
    """Whether the file tells photos that are done from others."""
    problems: Problems


class Album:
    """The photos of a folder, found by whatever a tool calls them: path or bare name, with or without ending."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise BadFileError(f"{folder} is no folder: name the one that holds the photos (--photos FOLDER)")
        self.folder = folder
        self.files = {file.relative_to(folder).as_posix(): file for file in sorted(photos_below(folder))}
        if not self.files:
            raise BadFileError(f"there is no photo in {folder}: name the folder that holds them (--photos FOLDER)")

    @cached_property
    def _names(self) -> dict[str, str | None]:
        return dict(names_of(self.files))

    def find(self, name: str) -> str | None:
        """Return a photo's path below the folder, an empty text where there is none, None where several fit."""
        called = PurePosixPath(name.replace("\\", "/"))
        while True:
            known = self._names.get(called.as_posix(), "")
            if known != "" or len(called.parts) < 2:
                return known
            called = PurePosixPath(*called.parts[1:])  # a tool may know more folders than we do


def read_labels(path: Path, album: Album, *, everything: bool = False) -> Labels:
    """Read labels in any of the forms; a file none of whose photos is there is an error.

    What nobody has looked at, and boxes that a draft itself doubts, are left out unless ``everything`` is asked for.
    """
    format, raw = _raw_photos(path)
    problems = Problems()
    found: dict[str, PhotoLabels] = {}
    unreviewed = 0
    for photo in raw:
        unreviewed += not photo.reviewed
        placed = _placed(photo, album, problems) if photo.reviewed or everything else None
        if placed is not None:
            before = found.get(placed.image)
            own = tuple(thing for thing in placed.things if thing.trusted or everything)
            things = (*(before.things if before is not None else ()), *own)
            found[placed.image] = replace(placed, things=things)
    if not found:
        first = next((f" ({kind}: {problems.places(kind, 1)[0]})" for kind in problems.kinds), "")
        nobody = f": nobody has looked at any of its {unreviewed} photos yet" if unreviewed else first
        raise DeixisError(f"{path} has no corrected photo of {album.folder}{nobody}")
    return Labels(path, format, found, unreviewed, any(photo.marked for photo in raw), problems)


def _placed(photo: RawPhoto, album: Album, problems: Problems) -> PhotoLabels | None:
    image = album.find(photo.name)
    if not image:
        kind = MISSING_IMAGE if image == "" else DUPLICATE_ID
        problems.note(kind, f"{photo.place}: {photo.name}")
        return None
    before = problems.count(BROKEN_IMAGE)
    size = file_size(album.files[image], None, problems)
    if size is None or problems.count(BROKEN_IMAGE) > before:
        return None
    if photo.size is not None and photo.size != size:
        told = f"{photo.place}: {photo.name} was {photo.size[0]}x{photo.size[1]}, is {size[0]}x{size[1]}"
        if abs(photo.size[0] * size[1] / (photo.size[1] * size[0]) - 1) > SAME_SHAPE:
            problems.note(OTHER_SHAPE, told)
            return None
        problems.note(RESIZED, told)
    things = (_thing(thing, photo, size, problems) for thing in photo.things)
    kept = tuple(thing for thing in things if thing is not None)
    return PhotoLabels(image, size, kept, photo.reviewed, photo.doubt)


def _thing(raw: RawThing, photo: RawPhoto, size: tuple[int, int], problems: Problems) -> LabelledThing | None:
    label = " ".join(raw.label.split()) if isinstance(raw.label, str) else ""
    if not label:
        problems.note(NO_LABEL, raw.place)
        return None
    corners = list(raw.corners)
    if photo.shares and len(corners) == 4 and all(isinstance(side, int | float) for side in corners):
        corners = [side * size[at % 2] for at, side in enumerate(corners)]
    box = usable_box(corners, None if photo.shares else photo.size, size, problems, raw.place)
    if box is None:
        return None
    return LabelledThing(label, box, raw.phrase, raw.sentence, raw.span, raw.score, raw.trusted)


def _raw_photos(path: Path) -> tuple[str, list[RawPhoto]]:
    """Tell the form of labels by their layout, and read them."""
    if path.is_dir():
        if yolo.recognises(path):
            return "yolo", yolo.photos(path)
        if next(path.rglob("*.xml"), None) is not None:
            return "voc", voc.photos(path)
        raise BadFileError(f"{path} holds neither classes.txt or data.yaml (YOLO) nor XML files (Pascal VOC)")
    if not path.is_file():
        raise BadFileError(f"there is no file or folder {path}")
    if path.suffix.lower() == ".xml":
        root = read_xml(path)
        return ("voc", voc.photos(path)) if root.tag == "annotation" else ("cvat", cvat.photos(root, path))
    if path.suffix.lower() == ".jsonl":
        return "json", _of_answers(path)
    data = read_json(path)
    kinds: Sequence[tuple[str, bool, Callable[[], list[RawPhoto]]]] = (
        ("coco", isinstance(data, dict) and "images" in data, lambda: coco.photos(data, path)),
        ("labelstudio", isinstance(data, list) and _are_tasks(data), lambda: labelstudio.photos(data, path)),
    )
    for name, fits, read in kinds:
        if fits:
            return name, read()
    return "json", _of_answers(path)


def _are_tasks(data: list[object]) -> bool:
    return bool(data) and isinstance(data[0], dict) and "data" in data[0]


def _of_answers(path: Path) -> list[RawPhoto]:
    """Return what `deixis label --format json` writes, as a draft."""
    found = []
    for at, answer in enumerate(read_answers(path)):
        photo = RawPhoto(answer.image, f"{path}, answer {at}", answer.size, doubt=doubt(answer))
        sentence = text_of(answer)
        for thing in things_of(answer, doubtful=True):
            said = sentence if thing.span is not None else None
            place = f"{photo.place}: {thing.text}"
            about = thing.text, said, thing.span, thing.score, thing.trusted
            photo.things.append(RawThing(thing.label, thing.box, place, *about))
        found.append(photo)
    return found
