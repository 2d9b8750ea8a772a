"""Clips with true moving boxes, made from photos with boxed phrases, in ActivityNet-Entities' form.

The public boxes and clips of ActivityNet-Entities cannot always be had. These clips have real pixels and exact boxes,
so the whole path of a clip (decoding, sampling frames, regions, training, F1 over frames) can be run and measured.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import av
import numpy as np
from PIL import Image

from deixis.atomic import require_new_folder, utf8, whole_folder
from deixis.data.activitynet_entities import FRAMES, SPLIT_FILE
from deixis.data.dataset import Dataset
from deixis.data.motion import box_in_view, camera_path, view, visible_share
from deixis.errors import BadFileError, DeixisError, MissingExtraError
from deixis.images import load_image
from deixis.text.classes import ObjectClasses
from deixis.text.parse import parse_sentences
from deixis.text.rules.lemmas import lemmatise_noun
from deixis.types.example import Example, ImageFile
from deixis.types.sentence import Box, Sentence
from deixis.video import sample_times

ANNOTATION_FILE = "anet_entities_clips.json"
BoxRule = Literal["best-frame", "every-frame"]
"""``best-frame``: a thing has its boxes on the one sampled frame that shows it best, as ActivityNet-Entities' people
drew them. ``every-frame``: on every sampled frame that shows it, which is kind to guessers, as one right frame is
enough for a word to count as found."""

_SPLIT_NAMES = {"train": "training", "val": "validation", "test": "testing"}
_AFTER_HEAD = frozenset(["of", "in", "on", "at", "with", "by", "from", "near", "behind", "and", "or", ",", "for", "to"])


@dataclass(frozen=True, slots=True)
class ClipSettings:
    """How the clips are made. Equal settings and photos give equal frames and boxes, up to the encoder's rounding."""

    seconds: float = 3.0
    rate: int = 10
    width: int = 320
    seed: int = 0
    threshold: int = 5
    """A lemma must head this many phrases of the first split's captions to be an object class."""
    captions: int = 1
    """Captions of each photo, those with the most boxed things first: each is a segment, ``seconds`` long, of its
    clip, and the camera moves anew for it."""
    boxes: BoxRule = "best-frame"

    def __post_init__(self) -> None:
        if self.boxes not in get_args(BoxRule):
            raise DeixisError(f"boxes are drawn on {' or '.join(get_args(BoxRule))}, not {self.boxes!r}")
        if not 1 <= self.captions <= 10:
            raise DeixisError(f"a clip takes 1 to 10 captions of its photo, not {self.captions}")
        if not (0.5 <= self.seconds <= 60 and 2 <= self.rate <= 60 and 64 <= self.width <= 1920):
            raise DeixisError(
                "clips last 0.5 to 60 seconds at 2 to 60 frames a second and are 64 to 1920 pixels wide, not "
                f"{self.seconds:g} s at {self.rate} and {self.width}"
            )

    @property
    def frames(self) -> int:
        """Frames in a segment."""
        return max(FRAMES, round(self.seconds * self.rate))


@dataclass(frozen=True, slots=True)
class ClipReport:
    """What :func:`make_clips` wrote."""

    folder: Path
    clips: Mapping[str, int]
    boxes: int
    classes: int
    skipped: int
    """Photos passed over: unreadable, or with no boxed phrase of a known class that stays in view."""


def make_clips(
    dataset: Dataset,
    folder: Path,
    counts: Mapping[str, int],
    settings: ClipSettings | None = None,
    *,
    classes: ObjectClasses | None = None,
    progress: Callable[[int], None] | None = None,
) -> ClipReport:
    """Turn photos of several splits into clips with boxes and write them as a dataset of its own.

    Args:
        dataset: Any dataset of photos whose phrases have boxes.
        folder: Where the new dataset goes; it must not exist yet, or be empty. It appears only when complete.
        counts: How many clips of each split.
        settings: Length, rate, size, seed, class threshold.
        classes: The object classes; by default those of the first split's captions.
        progress: Called with 1 for every clip written.
    """
    settings = settings or ClipSettings()
    require_new_folder(folder, "the clips")
    with whole_folder(folder) as work:
        report = _make(dataset, work, counts, settings, classes, progress)
    return replace(report, folder=folder)


def _make(
    dataset: Dataset,
    work: Path,
    counts: Mapping[str, int],
    settings: ClipSettings,
    classes: ObjectClasses | None,
    progress: Callable[[int], None] | None,
) -> ClipReport:
    (work / "videos").mkdir()
    annotations: dict[str, Any] = {}
    split_ids: dict[str, list[str]] = {}
    boxes = skipped = 0
    for split, count in counts.items():
        name = dataset.find_split(split)
        chosen = _chosen(dataset, name, count, settings.seed)
        # A few photos more than asked for: some lose all their boxes to the camera.
        parsed = _with_heads([caption for example in chosen for caption in example.captions])
        if classes is None:
            classes = ObjectClasses.from_corpus(parsed, settings.threshold)
        names = split_ids.setdefault(_SPLIT_NAMES.get(split, name), [])
        at = 0
        for example in chosen:
            captions = parsed[at : at + len(example.captions)]
            at += len(example.captions)
            if len(names) == count:
                break
            video = f"v_{re.sub(r'[^A-Za-z0-9_-]', '_', example.id)}"
            entry = (
                None if video in annotations else _clip(example, captions, classes, work / "videos", video, settings)
            )
            if entry is None:
                skipped += 1
                continue
            annotations[video] = entry
            names.append(video)
            boxes += sum(len(segment["process_bnd_box"]) for segment in entry["segments"].values())
            if progress is not None:
                progress(1)
        if not names:
            raise DeixisError(f"{dataset.path} has no photo in {split!r} with boxed phrases of a known object class")
    _write(work / ANNOTATION_FILE, {"vocab": list(classes.names) if classes else [], "annotations": annotations})
    _write(work / SPLIT_FILE, split_ids)
    made = {split: len(names) for split, names in split_ids.items()}
    return ClipReport(work, made, boxes, len(classes) if classes else 0, skipped)


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, separators=(",", ":")) + "\n", encoding="utf-8")


def _chosen(dataset: Dataset, split: str, count: int, seed: int) -> list[Example]:
    """Draw photos with boxed phrases, a few more than asked for, always the same ones for a seed."""
    ids = list(dataset.ids(split))
    np.random.default_rng([seed, zlib.crc32(split.encode())]).shuffle(ids)
    chosen: list[Example] = []
    for id in ids:
        if len(chosen) >= count + count // 5 + 5:
            break
        try:
            example = dataset[id]
        except BadFileError:
            continue
        if not isinstance(example.source, ImageFile):
            raise DeixisError(f"{dataset.path} is a dataset of clips; clips are made from photos")
        if any(phrase.boxes for caption in example.captions for phrase in caption.phrases):
            chosen.append(example)
    return chosen


def _clip(
    example: Example,
    captions: Sequence[Sentence],
    classes: ObjectClasses,
    folder: Path,
    video: str,
    settings: ClipSettings,
) -> dict[str, Any] | None:
    """Write one clip and return its annotation; None if nothing annotated stays in view."""
    try:
        photo = load_image(example.source)  # type: ignore[arg-type]
    except BadFileError:
        return None
    rng = np.random.default_rng([settings.seed, zlib.crc32(utf8(example.id))])
    width = settings.width // 2 * 2
    size = width, max(2, round(width * photo.height / photo.width / 2) * 2)  # even sides, as H.264 needs
    told = [_things(caption, classes) for caption in captions]
    told.sort(key=lambda item: (len(item[1]), len(item[0])), reverse=True)  # stable: equals stay in order
    duration = settings.frames / settings.rate
    windows: list[Windows] = []
    segments: dict[str, Any] = {}
    for sentence, things in told:
        for _ in range(5):
            path = camera_path(photo.size, settings.frames, rng)  # (F, 4)
            segment = _segment(sentence, things, path, size, settings, start=len(windows) * duration)
            if segment["process_bnd_box"]:
                segments[str(len(windows))] = segment
                windows.append(path)
                break
        if len(windows) == settings.captions:
            break
    if not windows:
        return None
    pictures = (view(photo, window, size) for path in windows for window in path)
    write_clip(folder / f"{video}.mp4", pictures, settings.rate)
    return {"duration": len(windows) * duration, "rwidth": size[0], "rheight": size[1], "segments": segments}


Windows = np.ndarray[Any, np.dtype[np.float64]]  # (F, 4)
Thing = tuple[tuple[Box, ...], list[int], list[str]]  # boxes, indices of its words, their classes


def _things(sentence: Sentence, classes: ObjectClasses) -> tuple[list[str], list[Thing]]:
    """Return the words of a caption without punctuation, and its boxed entities with the words that name them."""
    place: dict[int, int] = {}
    words: list[str] = []
    for at, token in enumerate(sentence.tokens):
        if any(map(str.isalnum, token.text)):
            place[at] = len(words)
            words.append(token.text)
    things: dict[str, Thing] = {}
    for at, phrase in enumerate(sentence.phrases):
        label = classes.of_phrase(sentence, phrase)
        head = phrase.head if phrase.head in place else None
        if not phrase.boxes or label is None or head is None:
            continue
        _, indices, labels = things.setdefault(phrase.entity or f"phrase {at}", (phrase.boxes, [], []))
        indices.append(place[head])
        labels.append(label)
    return words, list(things.values())


def _segment(
    words: Sequence[str],
    things: Sequence[Thing],
    windows: Windows,
    size: tuple[int, int],
    settings: ClipSettings,
    start: float = 0.0,
) -> dict[str, Any]:
    """Follow every box through the frames that a reader will sample."""
    duration = settings.frames / settings.rate
    segment: dict[str, Any] = {"timestamps": [round(start, 6), round(start + duration, 6)], "tokens": list(words)}
    keys = ("process_clss", "process_idx", "process_bnd_box", "frame_ind", "crowds")
    segment |= {key: [] for key in keys}
    numbers = [min(int(time * settings.rate + 1e-6), settings.frames - 1) for time in sample_times(0, duration, FRAMES)]
    sampled = windows[numbers]  # (10, 4)
    best = [_best_frame(boxes, sampled, size) if settings.boxes == "best-frame" else None for boxes, _, _ in things]
    for at in range(FRAMES):
        for (boxes, indices, labels), only in zip(things, best, strict=True):
            if only not in (None, at):
                continue
            for box in boxes:
                seen = box_in_view(box, sampled[at], size)
                if seen is not None:
                    row = (list(labels), list(indices), [round(v, 2) for v in seen], at, 0)
                    for key, value in zip(keys, row, strict=True):
                        segment[key].append(value)
    return segment


def _best_frame(boxes: Sequence[Box], windows: Windows, size: tuple[int, int]) -> int:
    """Return the frame that shows a thing best: most of its boxes, then the largest share of them, then the largest."""

    def how_well(at: int) -> tuple[int, float, float]:
        seen = [found for box in boxes if (found := box_in_view(box, windows[at], size)) is not None]
        share = round(sum(visible_share(box, windows[at]) for box in boxes), 1)  # a hand's shake decides nothing
        return len(seen), share, sum((x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in seen)

    return max(range(len(windows)), key=how_well)


def write_clip(path: Path, frames: Iterable[Image.Image], rate: int) -> None:
    """Encode pictures of one size as an MP4."""
    codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
    with av.open(str(path), "w") as container:
        stream: Any = None
        for picture in frames:
            if stream is None:
                stream = container.add_stream(codec, rate=rate)
                stream.width, stream.height, stream.pix_fmt = picture.width, picture.height, "yuv420p"
                if codec == "libx264":
                    stream.options = {"crf": "20", "preset": "veryfast"}
            frame = av.VideoFrame.from_ndarray(np.asarray(picture.convert("RGB")), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def _with_heads(captions: Sequence[Sentence]) -> list[Sentence]:
    """Give every phrase its head: by spaCy where it is installed, else by the rule that a head ends its first part."""
    try:
        return parse_sentences(captions, processes=1)
    except MissingExtraError:
        return [_heads_by_rule(caption) for caption in captions]


def _heads_by_rule(sentence: Sentence) -> Sentence:
    tokens = list(sentence.tokens)
    phrases = []
    for phrase in sentence.phrases:
        head = phrase.first
        for at in range(phrase.first, phrase.last):
            if at > phrase.first and tokens[at].text.lower() in _AFTER_HEAD:
                break
            head = at
        tokens[head] = replace(tokens[head], tag="NN", lemma=lemmatise_noun(tokens[head].text))
        phrases.append(replace(phrase, head=head))
    return replace(sentence, tokens=tuple(tokens), phrases=tuple(phrases))
