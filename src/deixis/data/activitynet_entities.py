"""ActivityNet-Entities: sentences about segments of clips, with boxes on ten frames of each segment.

Reads the files ``anet_entities_cleaned_class_thresh50_*.json`` (``vocab`` and ``annotations``: per video per segment
``tokens``, ``timestamps``, and for each box ``process_bnd_box``, ``frame_ind``, ``process_idx``, ``process_clss``,
``crowds``) and the skeletons of the test sets, which have no boxes. ``split_ids_anet_entities.json`` names the splits.
Frame sizes come from ``rwidth`` and ``rheight``, per video or in ``anet_entities_trainval.json`` beside; boxes are
scaled to the clip where there is one in ``videos/`` or ``clips/``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from deixis.data.boxes import usable_box
from deixis.data.dataset import UNKNOWN_ID, BadExampleError, Dataset
from deixis.data.files import EMPTY_CAPTION, first_folder
from deixis.data.images_of import annotated_size
from deixis.errors import BadFileError
from deixis.reading.plain import expect_list, expect_object, read_json
from deixis.types.example import ClipSegment, Example, LabelledBox
from deixis.types.sentence import Box, Phrase, Sentence, Token
from deixis.video import CLIP_SUFFIXES, read_clip

FRAMES = 10
ANNOTATED_WIDTH = 720
"""The public annotations were made on frames resized to this width; files that give no size are taken to be so."""

BROKEN_SEGMENT = "broken segment"
MISSING_CLIP = "missing clip"
BROKEN_CLIP = "broken clip"
BAD_INDEX = "object word outside the sentence"
BAD_FRAME = "box on a frame outside the segment"
REVERSED = "segment that ends before it starts"

SPLIT_FILE = "split_ids_anet_entities.json"
SIZE_FILE = "anet_entities_trainval.json"
_SPLIT_NAMES = {"training": "train", "validation": "val", "testing": "test"}


class ActivityNetEntities(Dataset):
    """One example per segment, named ``VIDEO_segment_00``; each annotated word is a phrase with its object class."""

    format = "activitynet-entities"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._root = path if path.is_dir() else path.parent
        self._sizes: dict[Path, tuple[int, int] | None] = {}

    @classmethod
    def recognises(cls, path: Path) -> bool:
        """A folder with annotation files, or one of them."""
        return bool(_annotation_files(path))

    @cached_property
    def _videos(self) -> dict[str, tuple[Path, dict[str, Any]]]:
        """Every video's file and entry."""
        found: dict[str, tuple[Path, dict[str, Any]]] = {}
        for file in _annotation_files(self.path):
            data = expect_object(read_json(file), str(file))
            for video, entry in expect_object(data.get("annotations"), f"{file}: annotations").items():
                place = f"{file}: annotations[{video!r}]"
                expect_object(expect_object(entry, place).get("segments"), f"{place}.segments")
                found.setdefault(video, (file, entry))
        return found

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The object classes (``vocab``) of the annotation files."""
        words: dict[str, None] = {}
        for file in _annotation_files(self.path):
            vocabulary = expect_object(read_json(file), str(file)).get("vocab", [])
            words |= dict.fromkeys(str(word) for word in expect_list(vocabulary, f"{file}: vocab"))
        return tuple(words)

    @cached_property
    def _segments(self) -> dict[str, tuple[str, str]]:
        """Example id -> video and segment."""
        return {
            example_id(video, segment): (video, segment)
            for video, (_, entry) in self._videos.items()
            for segment in sorted(entry["segments"], key=lambda name: (len(name), name))
        }

    @cached_property
    def _split_videos(self) -> Mapping[str, Sequence[str]]:
        file = self._root / SPLIT_FILE
        if not file.is_file():
            return {"all": tuple(self._videos)}
        found: dict[str, Sequence[str]] = {}
        for name, videos in expect_object(read_json(file), str(file)).items():
            split = _SPLIT_NAMES.get(name, name)
            found[split] = tuple(str(video) for video in expect_list(videos, f"{file}: {name}"))
        order = ("train", "val", "test")
        return {name: found[name] for name in sorted(found, key=lambda n: (order.index(n) if n in order else 3, n))}

    @property
    def splits(self) -> tuple[str, ...]:
        """Those of the split file that have annotations here: the public test boxes are held back."""
        return tuple(
            name for name, videos in self._split_videos.items() if any(video in self._videos for video in videos)
        )

    @cached_property
    def _split_of(self) -> dict[str, str]:
        return {video: split for split, videos in self._split_videos.items() for video in videos}

    def _ids_of(self, split: str) -> Sequence[str]:
        ids: list[str] = []
        for video in self._split_videos[split]:
            if video in self._videos:
                names = sorted(self._videos[video][1]["segments"], key=lambda name: (len(name), name))
                ids += [example_id(video, segment) for segment in names]
            else:
                self.problems.note(UNKNOWN_ID, f"{self._root / SPLIT_FILE}: {video} in {split}")
        return ids

    def _read(self, id: str) -> Example:
        if id not in self._segments:
            raise BadExampleError(UNKNOWN_ID, f"{self.path}: there is no segment {id!r}")
        video, segment = self._segments[id]
        file, entry = self._videos[video]
        place = f"{file}: annotations[{video!r}].segments[{segment!r}]"
        try:
            return self._example(id, video, entry, expect_object(entry["segments"][segment], place), place)
        except BadExampleError:
            raise
        except BadFileError as error:
            raise BadExampleError(BROKEN_SEGMENT, str(error)) from error

    def _example(self, id: str, video: str, entry: dict[str, Any], segment: dict[str, Any], place: str) -> Example:
        start, end = _timestamps(segment.get("timestamps"), place)
        if start > end:
            self.problems.note(REVERSED, f"{place}: {start:g} to {end:g}")
            start, end = end, start
        clip = self._clip(video)
        annotated = annotated_size(entry.get("rwidth"), entry.get("rheight")) or self._known_sizes.get(video)
        size = self._clip_size(clip) if clip is not None else None
        if annotated is None and size is not None:
            annotated = (ANNOTATED_WIDTH, round(size[1] * ANNOTATED_WIDTH / size[0]))
        words = [str(word) for word in expect_list(segment.get("tokens"), f"{place}.tokens")]
        phrases, objects = self._phrases(segment, len(words), annotated, size or annotated, place)
        captions: tuple[Sentence, ...] = ()
        if any(word.strip() for word in words):
            captions = (_sentence(words, phrases),)
        elif phrases or self._split_of.get(video) in ("train", "val"):  # the hidden test has no sentences on purpose
            self.problems.note(EMPTY_CAPTION, place)
        source = ClipSegment(clip, start, end, FRAMES)
        return Example(id, source, size or annotated, captions, self._split_of.get(video), tuple(objects))

    def _phrases(
        self,
        segment: dict[str, Any],
        length: int,
        annotated: tuple[int, int] | None,
        size: tuple[int, int] | None,
        place: str,
    ) -> tuple[dict[int, Phrase], list[LabelledBox]]:
        """Gather the boxes of each annotated word, and all boxes with their class and frame."""
        boxes = expect_list(segment.get("process_bnd_box", []), f"{place}.process_bnd_box")
        frames = expect_list(segment.get("frame_ind", []), f"{place}.frame_ind")
        places = expect_list(segment.get("process_idx", []), f"{place}.process_idx")
        classes = expect_list(segment.get("process_clss", []), f"{place}.process_clss")
        if len(places) != len(classes) or (boxes and not len(boxes) == len(frames) == len(places)):
            counts = f"{len(boxes)} boxes, {len(frames)} frames, {len(places)} indices, {len(classes)} classes"
            raise BadFileError(f"{place}: lists of different lengths: {counts}")
        words: dict[int, tuple[str, list[Box], list[int]]] = {}
        objects: list[LabelledBox] = []
        for at, (indices, labels) in enumerate(zip(places, classes, strict=True)):
            where = f"{place}.process_idx[{at}]"
            indices = indices if isinstance(indices, list) else [indices]
            labels = labels if isinstance(labels, list) else [labels]
            box, frame = None, 0
            if boxes:
                frame = frames[at]
                if not isinstance(frame, int) or not 0 <= frame < FRAMES:
                    self.problems.note(BAD_FRAME, f"{place}.frame_ind[{at}]: {frame!r}"[:300])
                    continue
                value = boxes[at] if isinstance(boxes[at], list) else [boxes[at]]
                box = usable_box(value, annotated, size, self.problems, f"{place}.process_bnd_box[{at}]")
            if box is not None:
                objects.append(LabelledBox(box, str(labels[0]) if labels else "", frame))
            for nth, index in enumerate(indices):
                if not isinstance(index, int) or not 0 <= index < length:
                    self.problems.note(BAD_INDEX, f"{where}: {index!r} of {length} words"[:300])
                    continue
                label = str(labels[nth] if nth < len(labels) else labels[-1]) if labels else ""
                _, own, shown = words.setdefault(index, (label, [], []))
                if box is not None:
                    own.append(box)
                    shown.append(frame)
        return {
            index: Phrase(index, index + 1, None, (), tuple(own), tuple(shown), head=index, label=label)
            for index, (label, own, shown) in sorted(words.items())
        }, objects

    @cached_property
    def _clip_files(self) -> dict[str, Path]:
        folder = first_folder(self._root, ("videos", "clips"))
        if folder is None:
            return {}
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
        return {Path(name).stem: folder / name for name in names if Path(name).suffix.lower() in CLIP_SUFFIXES}

    def _clip(self, video: str) -> Path | None:
        clip = self._clip_files.get(video)
        if clip is None and self._clip_files:
            self.problems.note(MISSING_CLIP, video)
        return clip

    def _clip_size(self, clip: Path) -> tuple[int, int] | None:
        if clip not in self._sizes:
            try:
                self._sizes[clip] = read_clip(clip).size
            except BadFileError as error:
                self.problems.note(BROKEN_CLIP, str(error))
                self._sizes[clip] = None
        return self._sizes[clip]

    @cached_property
    def _known_sizes(self) -> dict[str, tuple[int, int]]:
        """Frame sizes from the uncleaned annotations, if they lie beside."""
        file = self._root / SIZE_FILE
        if not file.is_file():
            return {}
        database = expect_object(expect_object(read_json(file), str(file)).get("database"), f"{file}: database")
        sizes = {
            video: annotated_size(entry.get("rwidth"), entry.get("rheight"))
            for video, entry in database.items()
            if isinstance(entry, dict)
        }
        return {video: size for video, size in sizes.items() if size is not None}


def example_id(video: str, segment: str) -> str:
    """Return the id of a segment: ``v_QOlSCBRmfWY_segment_00``."""
    return f"{video}_segment_{segment.zfill(2)}"


def _sentence(words: Sequence[str], phrases: Mapping[int, Phrase]) -> Sentence:
    """Join the dataset's own tokens with spaces, so that its word indices stay true."""
    tokens: list[Token] = []
    at = 0
    for word in words:
        tokens.append(Token(word, at, at + len(word)))
        at += len(word) + 1
    return Sentence(" ".join(words), tuple(tokens), tuple(phrases.values()))


def _timestamps(value: Any, place: str) -> tuple[float, float]:
    numbers = [v for v in value if isinstance(v, int | float) and 0 <= v < 1e9] if isinstance(value, list) else []
    if len(numbers) != 2:
        raise BadFileError(f"{place}.timestamps should be a start and an end in seconds, not {value!r}"[:300])
    return float(numbers[0]), float(numbers[1])


def _annotation_files(path: Path) -> list[Path]:
    candidates = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    return [
        file
        for file in candidates
        if file.name.startswith("anet_entities_") and file.name.endswith((".json", ".json.gz"))
        if file.name != SIZE_FILE and file.is_file()
    ]
