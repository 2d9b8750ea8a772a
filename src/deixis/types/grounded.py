"""The results people get: a caption whose words have boxes, and phrases with theirs, in one versioned JSON form.

The form is described by ``docs/grounded.schema.json``. It is the same wherever it comes from: command line, page,
HTTP interface or files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from deixis.errors import BadFileError
from deixis.types.sentence import Box
from deixis.types.shown import Shown

SCHEMA_VERSION = 1
LARGEST = 1e15
"""No number of an answer is larger: pixels, seconds and scores are far below, and sums of such numbers stay finite."""


@dataclass(frozen=True, slots=True, repr=False)
class GroundedWord:
    """One word of a caption; ``start`` and ``end`` index the caption's text exactly."""

    text: str
    start: int
    end: int
    boxes: tuple[Box, ...] = ()
    frames: tuple[int, ...] = ()
    """Parallel to ``boxes``: 0 for a photo, the index of the sampled frame for a clip."""
    score: float = 0.0
    groundable: bool = False
    """Whether the word names something one can point at."""
    trusted: bool = True
    """False where the grounder doubts that the thing is there."""
    presence: float | None = None
    """Probability that the thing is in the picture, where a grounder was asked (``check``)."""

    def __repr__(self) -> str:
        if not self.groundable:
            return f"<word {self.text!r}>"
        there = "" if self.presence is None else f", there: {self.presence:.2f}"
        doubt = "" if self.trusted else ", doubted"
        return f"<word {self.text!r} {_places(self.boxes)}, score {self.score:.2f}{there}{doubt}>"


@dataclass(frozen=True, slots=True, repr=False)
class GroundedCaption(Shown):
    """A caption and its words. ``image`` is whatever identifies the photo or clip segment: an id or a file name.

    Iterating gives the words; in a notebook it shows itself (``shown.py``).
    """

    image: str
    size: tuple[int, int]
    text: str
    words: tuple[GroundedWord, ...]
    score: float = 0.0
    """Mean log-probability of the words."""
    model: str = ""
    segment: tuple[float, float] | None = None
    """Start and end in seconds, for a clip."""
    frame_times: tuple[float, ...] = ()
    photo: Any = field(default=None, compare=False)
    """The photo itself where ``image`` is not its name, as for an array: to draw it. It is no part of the JSON."""

    def __iter__(self) -> Iterator[GroundedWord]:
        return iter(self.words)

    def __repr__(self) -> str:
        boxed = sum(bool(word.boxes) for word in self.words)
        when = "" if self.segment is None else f" {self.segment[0]:.1f} to {self.segment[1]:.1f} s"
        things = f"{boxed} word{'' if boxed == 1 else 's'} with boxes"
        return f"<caption {self.text!r}: {things}; {self.image}{when} {_size_text(self.size)}, by {self.model or '?'}>"

    def to_json(self) -> dict[str, Any]:
        """Return the documented JSON form."""
        data: dict[str, Any] = {
            "deixis": SCHEMA_VERSION,
            "kind": "caption",
            "image": self.image,
            "size": list(self.size),
            "text": self.text,
            "score": self.score,
            "model": self.model,
            "words": [_word_json(word) for word in self.words],
        }
        return data | _times_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON form back; anything malformed is a BadFileError that names the value."""
        _check_header(data, "caption")
        text = _text(data, "text")
        words = []
        for at, word in enumerate(_items(data, "words")):
            where = f"words[{at}]"
            start, end = _span(word, text, where)
            boxes, frames = _boxes(word, where)
            words.append(
                GroundedWord(
                    text=_text(word, "text", where),
                    start=start,
                    end=end,
                    boxes=boxes,
                    frames=frames,
                    score=_number(word.get("score", 0.0), f"{where}.score"),
                    groundable=bool(word.get("groundable", False)),
                    trusted=bool(word.get("trusted", True)),
                    presence=_presence(word, where),
                )
            )
        return cls(
            image=_text(data, "image"),
            size=_size(data),
            text=text,
            words=tuple(words),
            score=_number(data.get("score", 0.0), "score"),
            model=str(data.get("model", "")),
            **_times(data),
        )


@dataclass(frozen=True, slots=True, repr=False)
class GroundedPhrase:
    """One phrase with its boxes; ``ranked`` holds further candidate boxes, best first, starting with the answer."""

    text: str
    boxes: tuple[Box, ...] = ()
    frames: tuple[int, ...] = ()
    score: float = 0.0
    """Probability that the first box is right, where the grounder is calibrated; else the same as its share below."""
    found: bool = True
    """False means: probably not in the image."""
    start: int | None = None
    end: int | None = None
    ranked: tuple[Box, ...] = ()
    ranked_scores: tuple[float, ...] = ()
    """Shares of the candidates among all regions, which sum to at most 1: they order boxes and are no probability."""
    label: str | None = None
    """What labels call it, where somebody said so; else its head noun does (``deixis.export.things``)."""
    presence: float | None = None
    """Probability that the thing is in the picture at all, where the grounder is calibrated: ``found`` follows it."""

    def __repr__(self) -> str:
        there = "" if self.presence is None else f", there: {self.presence:.2f}"
        if not self.found:
            return f"<phrase {self.text!r}, probably not in the photo{there}>"
        return f"<phrase {self.text!r} {_places(self.boxes)}, score {self.score:.2f}{there}>"


@dataclass(frozen=True, slots=True, repr=False)
class GroundedPhrases(Shown):
    """Phrases of one image; with ``sentence`` set, each phrase's span indexes it exactly.

    Iterating gives the phrases; in a notebook it shows itself (``shown.py``).
    """

    image: str
    size: tuple[int, int]
    phrases: tuple[GroundedPhrase, ...]
    sentence: str | None = None
    model: str = ""
    segment: tuple[float, float] | None = None
    """Start and end in seconds, for a clip."""
    frame_times: tuple[float, ...] = ()
    photo: Any = field(default=None, compare=False)
    """The photo itself where ``image`` is not its name; no part of the JSON."""

    def __iter__(self) -> Iterator[GroundedPhrase]:
        return iter(self.phrases)

    def __repr__(self) -> str:
        found = ", ".join(repr(phrase.text) for phrase in self.phrases if phrase.found) or "nothing"
        absent = ", ".join(repr(phrase.text) for phrase in self.phrases if not phrase.found)
        rest = f"; probably not there: {absent}" if absent else ""
        return f"<phrases found: {found}{rest}; {self.image} {_size_text(self.size)}, by {self.model or '?'}>"

    def to_json(self) -> dict[str, Any]:
        """Return the documented JSON form."""
        phrases = []
        for phrase in self.phrases:
            item: dict[str, Any] = {
                "text": phrase.text,
                "boxes": [list(box) for box in phrase.boxes],
                "frames": list(phrase.frames),
                "score": phrase.score,
                "found": phrase.found,
            }
            if phrase.start is not None:
                item |= {"start": phrase.start, "end": phrase.end}
            if phrase.label is not None:
                item["label"] = phrase.label
            if phrase.presence is not None:
                item["presence"] = phrase.presence
            if phrase.ranked:
                item |= {"ranked": [list(b) for b in phrase.ranked], "ranked_scores": list(phrase.ranked_scores)}
            phrases.append(item)
        data: dict[str, Any] = {
            "deixis": SCHEMA_VERSION,
            "kind": "phrases",
            "image": self.image,
            "size": list(self.size),
            "sentence": self.sentence,
            "model": self.model,
            "phrases": phrases,
        }
        return data | _times_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the JSON form back; anything malformed is a BadFileError that names the value."""
        _check_header(data, "phrases")
        sentence = None if data.get("sentence") is None else _text(data, "sentence")
        phrases = []
        for at, item in enumerate(_items(data, "phrases")):
            where = f"phrases[{at}]"
            boxes, frames = _boxes(item, where)
            start, end = _span(item, sentence, where) if sentence is not None and "start" in item else (None, None)
            phrases.append(
                GroundedPhrase(
                    text=_text(item, "text", where),
                    boxes=boxes,
                    frames=frames,
                    score=_number(item.get("score", 0.0), f"{where}.score"),
                    found=bool(item.get("found", True)),
                    start=start,
                    end=end,
                    ranked=tuple(_box(box, f"{where}.ranked") for box in _list(item, "ranked", where)),
                    ranked_scores=tuple(
                        _number(score, f"{where}.ranked_scores") for score in _list(item, "ranked_scores", where)
                    ),
                    label=None if item.get("label") is None else _text(item, "label", where),
                    presence=_presence(item, where),
                )
            )
        return cls(
            image=_text(data, "image"),
            size=_size(data),
            phrases=tuple(phrases),
            sentence=sentence,
            model=str(data.get("model", "")),
            **_times(data),
        )


def _places(boxes: Sequence[Box]) -> str:
    """Return where boxes are, for a repr: the first one, and how many more."""
    if not boxes:
        return "without a box"
    more = f" and {len(boxes) - 1} more" if len(boxes) > 1 else ""
    return f"at {' '.join(f'{side:.0f}' for side in boxes[0])}{more}"


def _size_text(size: tuple[int, int]) -> str:
    return f"({size[0]}x{size[1]})"


def _word_json(word: GroundedWord) -> dict[str, Any]:
    data: dict[str, Any] = {
        "text": word.text,
        "start": word.start,
        "end": word.end,
        "boxes": [list(box) for box in word.boxes],
        "frames": list(word.frames),
        "score": word.score,
        "groundable": word.groundable,
        "trusted": word.trusted,
    }
    return data if word.presence is None else data | {"presence": word.presence}


def _presence(item: Mapping[str, Any], where: str) -> float | None:
    return None if item.get("presence") is None else _number(item["presence"], f"{where}.presence")


def _check_header(data: Mapping[str, Any], kind: str) -> None:
    if not isinstance(data, Mapping):
        raise BadFileError(f"expected a JSON object for grounded {kind}, got {type(data).__name__}")
    if data.get("deixis") != SCHEMA_VERSION:
        raise BadFileError(
            f'expected "deixis": {SCHEMA_VERSION}, got {_shown(data.get("deixis"))}: '
            "not our JSON, or of a newer version"
        )
    if data.get("kind") != kind:
        raise BadFileError(f'expected "kind": "{kind}", got {_shown(data.get("kind"))}')


def _text(data: Mapping[str, Any], key: str, where: str = "") -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise BadFileError(f"{where + '.' if where else ''}{key} should be a string, got {_shown(value)}")
    return value


def _list(data: Mapping[str, Any], key: str, where: str = "") -> Sequence[Any]:
    value = data.get(key, ())
    if not isinstance(value, list | tuple):
        raise BadFileError(f"{where + '.' if where else ''}{key} should be a list, got {_shown(value)}")
    return value


def _times_json(answer: GroundedCaption | GroundedPhrases) -> dict[str, Any]:
    if answer.segment is None:
        return {}
    return {"segment": list(answer.segment), "frame_times": list(answer.frame_times)}


def _times(data: Mapping[str, Any]) -> dict[str, Any]:
    segment = data.get("segment")
    return {
        "segment": None if segment is None else _segment(segment),
        "frame_times": tuple(_number(value, "frame_times") for value in _list(data, "frame_times")),
    }


def _segment(value: Any) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise BadFileError(f"segment should be [start, end] in seconds, got {_shown(value)}")
    return _number(value[0], "segment"), _number(value[1], "segment")


def _shown(value: Any) -> str:
    try:
        return repr(value)[:100]
    except (RecursionError, ValueError):  # lists without end, numbers of thousands of digits
        return f"a {type(value).__name__}"


def _items(data: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    value = data.get(key)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BadFileError(f"{key} should be a list of objects, got {type(value).__name__}")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LARGEST <= value <= LARGEST:
        raise BadFileError(f"{where} should be a number between -1e15 and 1e15, got {_shown(value)}")
    return float(value)


def _size(data: Mapping[str, Any]) -> tuple[int, int]:
    value = data.get("size")
    if not (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(v, int) and 0 < v < LARGEST for v in value)
    ):
        raise BadFileError(f"size should be [width, height] in pixels, got {_shown(value)}")
    return int(value[0]), int(value[1])


def _box(value: Any, where: str) -> Box:
    if not isinstance(value, list | tuple) or len(value) != 4:
        raise BadFileError(f"{where} should be [x1, y1, x2, y2], got {_shown(value)}")
    x1, y1, x2, y2 = (_number(v, where) for v in value)
    if x2 < x1 or y2 < y1:
        raise BadFileError(f"{where} should be [x1, y1, x2, y2] with x1 <= x2 and y1 <= y2, got {list(value)!r}")
    return x1, y1, x2, y2


def _boxes(item: Mapping[str, Any], where: str) -> tuple[tuple[Box, ...], tuple[int, ...]]:
    boxes = tuple(_box(box, f"{where}.boxes") for box in _list(item, "boxes", where))
    frames = tuple(int(_number(frame, f"{where}.frames")) for frame in _list(item, "frames", where))
    if frames and len(frames) != len(boxes):
        raise BadFileError(f"{where} has {len(boxes)} boxes but {len(frames)} frames")
    return boxes, frames or (0,) * len(boxes)


def _span(item: Mapping[str, Any], text: str, where: str) -> tuple[int, int]:
    start, end = item.get("start"), item.get("end")
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start <= end <= len(text)):
        raise BadFileError(
            f"{where} has span {_shown(start)} to {_shown(end)}, outside a text of {len(text)} characters"
        )
    return start, end
