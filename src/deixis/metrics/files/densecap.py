"""Reading ActivityNet Captions' files: a submission, and the annotations it is scored against."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deixis.errors import BadFileError, DeixisError
from deixis.metrics.captions.densecap import Event
from deixis.reading.files import read_text


def read_dense_submission(path: str | Path) -> dict[str, list[Event]]:
    """Read ``{"results": {video: [{"sentence": ..., "timestamp": [start, end]}, ...]}}``."""
    content = _read(path)
    results = content.get("results")
    if not isinstance(results, dict):
        raise BadFileError(f"{path}: has no object 'results': this is no ActivityNet Captions submission")
    events: dict[str, list[Event]] = {}
    for video, items in results.items():
        if not isinstance(items, list):
            raise BadFileError(f"{path}: the results of video {video!r} are {items!r:.80}, must be a list")
        events[video] = [_submitted(path, video, number, item) for number, item in enumerate(items)]
    return events


def read_dense_references(path: str | Path) -> dict[str, list[Event]]:
    """Read ``{video: {"timestamps": [[start, end], ...], "sentences": [...]}}``, the form of ``val_1.json``.

    An annotation with its two times swapped is put right: annotators did that, and nothing else can be meant.
    """
    events: dict[str, list[Event]] = {}
    for video, item in _read(path).items():
        times, sentences = (item.get("timestamps"), item.get("sentences")) if isinstance(item, dict) else (None, None)
        if not isinstance(times, list) or not isinstance(sentences, list):
            raise BadFileError(
                f"{path}: video {video!r} lacks 'timestamps' or 'sentences': no ActivityNet Captions file"
            )
        if len(times) != len(sentences):
            raise BadFileError(f"{path}: video {video!r} has {len(times)} timestamps for {len(sentences)} sentences")
        both = zip(times, sentences, strict=True)
        events[video] = [
            _event(path, video, number, sorted(time) if _is_interval(time) else time, text)
            for number, (time, text) in enumerate(both)
        ]
    return events


def _read(path: str | Path) -> Mapping[str, Any]:
    try:
        content = json.loads(read_text(Path(path)), object_pairs_hook=_no_twice)
    except DeixisError as error:
        raise BadFileError(f"{path}: {error}") from None
    except (RecursionError, ValueError) as error:
        raise BadFileError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(content, dict):
        raise BadFileError(f"{path}: must be a JSON object, is a {type(content).__name__}")
    return content


def _no_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DeixisError(f"{twice!r} occurs twice: JSON would silently keep the last")
    return result


def _submitted(path: str | Path, video: str, number: int, item: object) -> Event:
    if not isinstance(item, dict) or "sentence" not in item or "timestamp" not in item:
        raise BadFileError(f"{path}: event {number} of video {video!r} lacks 'sentence' or 'timestamp'")
    return _event(path, video, number, item["timestamp"], item["sentence"])


def _event(path: str | Path, video: str, number: int, time: object, sentence: object) -> Event:
    where = f"{path}: event {number} of video {video!r}"
    if not isinstance(time, list) or not _is_interval(time):
        raise BadFileError(f"{where} has the timestamp {time!r}, must be [start, end] in seconds")
    if not isinstance(sentence, str):
        raise BadFileError(f"{where} has the sentence {sentence!r}, must be text")
    try:
        return Event(float(time[0]), float(time[1]), sentence)
    except DeixisError as error:
        raise BadFileError(f"{where}: {error}") from None


def _is_interval(time: object) -> bool:
    return isinstance(time, list) and len(time) == 2 and all(type(value) in (int, float) for value in time)
