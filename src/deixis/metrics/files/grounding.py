"""Grounding references and submissions as others write them: ActivityNet-Entities (clips) and GVD's Flickr30k (photos).

Both keep annotated words per sentence (``process_idx``, ``process_clss``, ``process_bnd_box``) and submissions as lists
of classes, word indices and boxes. What is read here becomes the items of ``object_words``; nothing is passed over in
silence: a wrong value is an error with its line, and what the rules pass over is said in ``notes``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from deixis.errors import DeixisError
from deixis.metrics.files.json_lines import JsonFile, Key, show
from deixis.metrics.grounding.lemmas import Lemmas
from deixis.metrics.grounding.object_words import PredictedWord, ReferenceSentence
from deixis.types import Box

FRAMES = 10
"""Frames sampled from each segment of ActivityNet-Entities."""

Mode = Literal["gen", "GT"]
"""Whether boxes belong to generated sentences or to the references themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class GroundingReference:
    """The annotated sentences by item: (video, segment) for clips, (image,) for photos, which have several each."""

    kind: Literal["clips", "photos"]
    sentences: dict[tuple[str, ...], tuple[ReferenceSentence, ...]]
    outside: frozenset[tuple[str, ...]]
    """Items of the file that are not in the chosen split."""
    vocabulary: frozenset[str]
    texts: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    """The sentences as plain text, for caption metrics."""


@dataclass(frozen=True, slots=True, eq=False)
class GroundingSubmission:
    """Predicted words by item, one list per sentence: one for generated captions, one per reference in GT mode."""

    kind: Literal["clips", "photos"]
    words: dict[tuple[str, ...], tuple[tuple[PredictedWord, ...], ...]]
    mode: Mode | None
    region_source: str | None = None
    """What the file's ``external_data`` says."""


def is_grounding_reference(data: Any) -> bool:
    """Whether parsed JSON looks like a reference of either data set."""
    notes = data.get("annotations") if isinstance(data, dict) else None
    if isinstance(notes, dict):
        return all(isinstance(video, dict) and "segments" in video for video in list(notes.values())[:1])
    return isinstance(notes, list) and bool(notes) and isinstance(notes[0], dict) and "captions" in notes[0]


def is_grounding_submission(data: Any) -> bool:
    """Whether parsed JSON looks like a submission to either evaluation."""
    return isinstance(data, dict) and isinstance(data.get("results"), dict)


def read_reference(file: JsonFile, lemma: Lemmas, split: Collection[str] | None = None) -> GroundingReference:
    """Read the references of the videos or images in ``split``, or of all of them."""
    if not is_grounding_reference(file.data):
        raise file.error([], "is not an ActivityNet-Entities or GVD Flickr30k reference: no annotations with sentences")
    clips = isinstance(file.data["annotations"], dict)
    parts = _clip_sentences(file) if clips else _photo_sentences(file)
    lemma = cache(lemma)
    sentences, texts = {}, {}
    outside = set()
    for item, notes in parts:
        if split is not None and item[0] not in split:
            outside.add(item)
            continue
        if item in sentences:
            raise file.error(notes[0][0] if notes else ["annotations"], f"image {show(item[0])} is there twice")
        sentences[item] = tuple(
            sentence for keys, note in notes if (sentence := _sentence(file, keys, note, clips, lemma)) is not None
        )
        texts[item] = tuple(" ".join(map(str, note.get("tokens", ()))) for _, note in notes)
    if not sentences:
        raise DeixisError(f"{file.path} has none of the {len(split or ())} ids of the split")
    vocabulary = file.data.get("vocab", [])
    return GroundingReference(
        "clips" if clips else "photos", sentences, frozenset(outside), frozenset(map(str, vocabulary)), texts
    )


_Parts = Iterator[tuple[tuple[str, ...], list[tuple[list[Key], dict[str, Any]]]]]


def _clip_sentences(file: JsonFile) -> _Parts:
    for video, note in file.data["annotations"].items():
        keys: list[Key] = ["annotations", video]
        segments = file.object_at(note, keys, "one video").get("segments")
        for segment, sentence in file.object_at(segments, [*keys, "segments"], "segments").items():
            place = [*keys, "segments", segment]
            yield (video, segment), [(place, file.object_at(sentence, place, "one segment"))]


def _photo_sentences(file: JsonFile) -> _Parts:
    for at, note in enumerate(file.data["annotations"]):
        keys: list[Key] = ["annotations", at]
        image = file.id_at(file.object_at(note, keys, "one image").get("image_id"), [*keys, "image_id"])
        captions = file.list_at(note.get("captions"), [*keys, "captions"], "captions")
        places = [[*keys, "captions", number] for number in range(len(captions))]
        yield (
            (image,),
            [(place, file.object_at(c, place, "one caption")) for place, c in zip(places, captions, strict=True)],
        )


def _sentence(
    file: JsonFile, keys: list[Key], note: dict[str, Any], clips: bool, lemma: Lemmas
) -> ReferenceSentence | None:
    """Return one annotated sentence; None for a segment of a clip that nobody annotated."""
    columns = {
        name: file.list_at(note.get(name), [*keys, name], what)
        for name, what in (
            ("tokens", "words"),
            ("process_idx", "word indices"),
            ("process_clss", "object classes"),
            ("process_bnd_box", "boxes"),
        )
    }
    frames = file.list_at(note.get("frame_ind"), [*keys, "frame_ind"], "frames") if clips else None
    if frames is not None and not frames:
        return None  # the public skeletons keep classes and indices of such sentences, but no box
    sizes = {name: len(columns[name]) for name in ("process_idx", "process_clss", "process_bnd_box")}
    if frames is not None:
        sizes["frame_ind"] = len(frames)
    if len(set(sizes.values())) > 1:
        raise file.error(keys, f"has lists of unequal length: {', '.join(f'{k} {v}' for k, v in sizes.items())}")
    tokens = [file.text_at(token, [*keys, "tokens", at], "a word") for at, token in enumerate(columns["tokens"])]
    boxes: list[tuple[int, str, Box, int]] = []
    for at in range(sizes["process_idx"]):
        place: list[Key] = [*keys, "process_bnd_box", at]
        indices, labels = columns["process_idx"][at], columns["process_clss"][at]
        if not clips:  # one word per entry, with one box or several
            indices, labels = [indices], [labels]
        found = columns["process_bnd_box"][at]
        several = not clips and isinstance(found, list) and bool(found) and isinstance(found[0], list)
        shapes = [file.box_at(b, [*place, n]) for n, b in enumerate(found)] if several else [file.box_at(found, place)]
        frame = 0
        if frames is not None:
            frame = file.whole_at(frames[at], [*keys, "frame_ind", at], "a frame")
            if frame >= FRAMES:
                raise file.error([*keys, "frame_ind", at], f"is {frame}: frames are numbered 0 to {FRAMES - 1}")
        file.list_at(indices, [*keys, "process_idx", at], "word indices")
        file.list_at(labels, [*keys, "process_clss", at], "object classes")
        if len(indices) != len(labels):
            raise file.error([*keys, "process_clss", at], f"has {len(labels)} classes for {len(indices)} words")
        for index, label in zip(indices, labels, strict=True):
            index = file.whole_at(index, [*keys, "process_idx", at], "the index of a word")
            if index >= len(tokens):
                raise file.error([*keys, "process_idx", at], f"points at word {index} of {len(tokens)}")
            label = file.text_at(label, [*keys, "process_clss", at], "an object class")
            boxes.extend((index, label, box, frame) for box in shapes)
    annotated = {index for index, *_ in boxes}
    others = {lemma(token) for at, token in enumerate(tokens) if at not in annotated and token}
    return ReferenceSentence.of(boxes, others)


def read_submission(file: JsonFile, lemma: Lemmas) -> GroundingSubmission:
    """Read a submission of either data set; which one is told by its shape."""
    results = file.data.get("results") if isinstance(file.data, dict) else None
    if not isinstance(results, dict):
        raise file.error([], 'is not a grounding submission: no object "results"')
    if not results:
        raise file.error(["results"], "is empty: nothing was submitted")
    mode = file.data.get("eval_mode", file.data.get("label"))
    if mode not in (None, "gen", "GT"):
        raise file.error(["eval_mode"], f'should be "gen" or "GT", got {show(mode)}')
    lemma = cache(lemma)
    clips = isinstance(next(iter(results.values())), dict)
    words: dict[tuple[str, ...], tuple[tuple[PredictedWord, ...], ...]] = {}
    for name, answer in results.items():
        keys: list[Key] = ["results", name]
        if clips:
            for segment, sentence in file.object_at(answer, keys, "segments").items():
                words[name, segment] = (_words(file, [*keys, segment], sentence, True, lemma),)
        else:
            sentences = file.list_at(answer, keys, "sentences")
            words[(name,)] = tuple(
                _words(file, [*keys, at], sentence, False, lemma) for at, sentence in enumerate(sentences)
            )
    source = file.data.get("external_data")
    details = source.get("details") if isinstance(source, dict) else None
    return GroundingSubmission("clips" if clips else "photos", words, mode, details if details else None)


def _words(file: JsonFile, keys: list[Key], sentence: Any, clips: bool, lemma: Lemmas) -> tuple[PredictedWord, ...]:
    boxes_key = "bbox_for_all_frames" if clips else "bbox"
    sentence = file.object_at(sentence, keys, "one sentence")
    labels = file.list_at(sentence.get("clss"), [*keys, "clss"], "object classes")
    boxes = file.list_at(sentence.get(boxes_key), [*keys, boxes_key], "boxes")
    indices = file.list_at(sentence.get("idx_in_sent", [0] * len(labels)), [*keys, "idx_in_sent"], "word indices")
    if not len(labels) == len(boxes) == len(indices):
        raise file.error(
            keys, f"has {len(labels)} classes, {len(indices)} word indices and {len(boxes)} boxes: as many of each"
        )
    words = []
    for at, (label, index, found) in enumerate(zip(labels, indices, boxes, strict=True)):
        label = file.text_at(label, [*keys, "clss", at], "an object class")
        index = file.whole_at(index, [*keys, "idx_in_sent", at], "the index of a word")
        place: list[Key] = [*keys, boxes_key, at]
        if clips:
            frames = file.list_at(found, place, f"{FRAMES} boxes, one for each frame")
            if len(frames) != FRAMES:
                raise file.error(place, f"has boxes for {len(frames)} frames, expected one for each of {FRAMES}")
            shapes = file.boxes_at(frames, place, longer=True)
        else:
            shapes = (file.box_at(found, place, longer=True),)
        words.append(PredictedWord(label, lemma(label), shapes, tuple(range(len(shapes))), index))
    return tuple(words)


_NO_WORDS = ("vocab", "bbox", "bbox_for_all_frames", "process_bnd_box", "process_idx", "frame_ind", "idx_in_sent")


def words_in(data: Any) -> list[str]:
    """Return every string that may be a word or a class in the JSON of a reference or a submission."""
    found: list[str] = []
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for key in ("tokens", "clss", "process_clss", "vocab"):
                if key in value:
                    found += _strings(value[key])
            waiting += [
                inner for key, inner in value.items() if key not in _NO_WORDS and isinstance(inner, dict | list)
            ]
        elif isinstance(value, list) and value and isinstance(value[0], dict | list):
            waiting += value
    return found


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for inner in value for text in _strings(inner)] if isinstance(value, list) else []
