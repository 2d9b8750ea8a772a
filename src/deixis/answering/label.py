"""Draft boxes for many photos: of the phrases that somebody names, or of what their captions say.

Captions give phrases of their own where they have them, else their noun phrases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from deixis.answering.asking import Asking
from deixis.answering.load import Deixis
from deixis.answering.resumable_lines import AnswerLines
from deixis.answering.work import Asked, FindPhrases, FindSentences, Place, Source, answer_photos
from deixis.data.dataset import Dataset
from deixis.errors import DeixisError
from deixis.text.rules.chunker import chunk
from deixis.text.vocabulary import NOUN_TAGS, Vocabulary, is_groundable
from deixis.types import Example, GroundedPhrases, ImageFile, Sentence

Failed = Callable[[str, DeixisError], None]


def open_drafts(output: Path, model: Deixis, threshold: float | None = None) -> AnswerLines[GroundedPhrases]:
    """Open the file beside ``output`` that holds what is done, so that a stopped command can go on.

    Drafts of another threshold are another file: what was found, and with how many boxes, differs.
    """
    model.require_threshold(threshold)
    own = "" if threshold is None else f".{threshold:g}"
    path = output.with_name(f".{output.name}{own}.drafts.jsonl")
    return AnswerLines.open(path, GroundedPhrases.from_json, model=model.name, key=_key, shown=output)


def draft_labels(
    model: Deixis,
    dataset: Dataset,
    ids: Sequence[str],
    drafts: AnswerLines[GroundedPhrases],
    failed: Failed,
    *,
    asking: Asking | None = None,
    place: Place | None = None,
    source: Source = Source(),  # noqa: B008 - a tuple
) -> Iterator[int]:
    """Ground every caption of the photos that is not in ``drafts`` yet; yields how many photos were just dealt with.

    ``place`` and ``source`` say where, and with which model there: see :func:`deixis.answering.work.answer_photos`.
    """
    passed = 0

    def waiting() -> Iterator[Asked[list[Sentence]]]:
        nonlocal passed
        for name in ids:
            try:
                example = dataset[name]
                if not isinstance(example.source, ImageFile):
                    raise DeixisError("a clip: boxes are drafted for photos only")
            except DeixisError as error:
                failed(name, error)
                passed += 1
                continue
            image = photo_of(example, dataset)
            sentences = [groundable(caption, model.words) for caption in example.captions]
            sentences = [one for one in sentences if one.phrases and f"{image}\n{one.text}" not in drafts.answers]
            if sentences:
                yield Asked(image, example.source, sentences)
            else:
                passed += 1

    ask = FindSentences(asking or Asking())
    for found in answer_photos(model, waiting(), ask, place or Place(), source=source):
        for name, reason in found.failed:
            failed(name, DeixisError(reason))
        drafts.add(found.answers)
        yield passed + found.photos
        passed = 0
    yield passed


def draft_phrases(
    model: Deixis,
    photos: Mapping[str, Path],
    phrases: Sequence[str],
    drafts: AnswerLines[GroundedPhrases],
    failed: Failed,
    *,
    boxes: int = 1,
    asking: Asking | None = None,
    place: Place | None = None,
    source: Source = Source(),  # noqa: B008 - a tuple
) -> Iterator[int]:
    """Look for the same phrases in photos without captions; yields how many photos were just dealt with.

    A phrase is its own label: who asks for a "red car" wants a class of that name.

    Args:
        model: Finds them.
        photos: Files by what the labels call them.
        phrases: What to look for.
        drafts: What is done already; photos that were asked for other phrases are asked again.
        failed: Told which photos cannot be read.
        boxes: At most so many boxes of a phrase.
        asking: How; its threshold says what counts as found.
        place: Where; this process if None.
        source: What other processes load, see :func:`deixis.answering.work.answer_photos`.
    """
    waiting = [
        Asked(image, path, None)
        for image, path in photos.items()
        if (done := drafts.answers.get(f"{image}\nNone")) is None
        or [phrase.text for phrase in done.phrases] != list(phrases)
    ]
    yield len(photos) - len(waiting)
    ask = FindPhrases(tuple(phrases), boxes, asking or Asking())
    for found in answer_photos(model, waiting, ask, place or Place(), source=source):
        for name, reason in found.failed:
            failed(name, DeixisError(reason))
        labelled = [
            replace(answer, phrases=tuple(replace(phrase, label=phrase.text) for phrase in answer.phrases))
            for answer in found.answers
        ]
        drafts.add(labelled)
        yield found.photos


def read_phrases(text: str) -> list[str]:
    """Return the phrases of a list: one a line, or between commas; what comes twice counts once."""
    found = [" ".join(part.split()) for line in text.splitlines() for part in line.split(",")]
    phrases = list(dict.fromkeys(part for part in found if part and not part.startswith("#")))
    if not phrases:
        raise DeixisError('there is no phrase to look for: give some, such as --phrases "dog, red car"')
    return phrases


def groundable(caption: Sentence, vocabulary: Vocabulary) -> Sentence:
    """Return a caption with the phrases to find: annotated ones that are visual, or noun phrases that name things."""
    if caption.phrases:
        kept = tuple(phrase for phrase in caption.phrases if phrase.visual)
        # without phrases of its own a sentence would be searched for them
        return chunk(replace(caption, phrases=kept), vocabulary) if kept else replace(caption, phrases=())
    parsed = chunk(caption, vocabulary)
    things = tuple(
        phrase
        for phrase in parsed.phrases
        if phrase.head is not None
        and parsed.tokens[phrase.head].tag in NOUN_TAGS
        and is_groundable(parsed.tokens[phrase.head].tag, parsed.tokens[phrase.head].lemma or "")
    )
    return chunk(replace(caption, phrases=things), vocabulary) if things else replace(caption, phrases=())


def photo_of(example: Example, dataset: Dataset) -> str:
    """Return what labels call a photo: its path below the dataset's folder, or its id where it lies elsewhere."""
    folder = dataset.path if dataset.path.is_dir() else dataset.path.parent
    source = example.source
    if isinstance(source, ImageFile) and source.read is None and source.path.is_relative_to(folder):
        return source.path.relative_to(folder).as_posix()
    return example.id


def _key(answer: GroundedPhrases) -> str:
    return f"{answer.image}\n{answer.sentence}"
