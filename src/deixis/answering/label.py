"""Draft boxes for the captions of a whole dataset: phrases of its own where it has them, else its noun phrases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from deixis.answering.batches import in_batches
from deixis.answering.load import Deixis
from deixis.answering.resumable_lines import AnswerLines
from deixis.data.dataset import Dataset
from deixis.errors import DeixisError
from deixis.text.rules.chunker import chunk
from deixis.text.vocabulary import NOUN_TAGS, Vocabulary, is_groundable
from deixis.types import Example, GroundedPhrases, ImageFile, Sentence

Failed = Callable[[str, DeixisError], None]


def open_drafts(output: Path, model: Deixis) -> AnswerLines[GroundedPhrases]:
    """Open the file beside ``output`` that holds what is done, so that a stopped command can go on."""
    path = output.with_name(f".{output.name}.drafts.jsonl")
    return AnswerLines.open(path, GroundedPhrases.from_json, model=model.name, key=_key)


def draft_labels(
    model: Deixis, dataset: Dataset, ids: Sequence[str], drafts: AnswerLines[GroundedPhrases], failed: Failed
) -> Iterator[int]:
    """Ground every caption of the photos that is not in ``drafts`` yet; yields how many photos were just dealt with."""
    waiting: dict[str, tuple[Example, list[Sentence]]] = {}
    passed = 0
    for at, name in enumerate(ids):
        try:
            example = dataset[name]
            if not isinstance(example.source, ImageFile):
                raise DeixisError("a clip: boxes are drafted for photos only")
        except DeixisError as error:
            failed(name, error)
            passed += 1
        else:
            image = photo_of(example, dataset)
            sentences = [groundable(caption, model.words) for caption in example.captions]
            sentences = [one for one in sentences if one.phrases and f"{image}\n{one.text}" not in drafts.answers]
            if sentences:
                waiting[image] = (example, sentences)
            else:
                passed += 1
        if len(waiting) == 64 or at + 1 == len(ids):
            yield passed + _draft(model, waiting, drafts, failed)
            waiting, passed = {}, 0


def _draft(
    model: Deixis,
    waiting: dict[str, tuple[Example, list[Sentence]]],
    drafts: AnswerLines[GroundedPhrases],
    failed: Failed,
) -> int:
    sources = {image: example.source for image, (example, _) in waiting.items()}
    photos = [(image, source) for image, source in sources.items() if isinstance(source, ImageFile)]
    for batch in in_batches(photos, failed):
        regions = model.regions([pixels for _, pixels in batch])
        for (image, _), seen in zip(batch, regions, strict=True):
            drafts.add(model.ground_sentences(seen, waiting[image][1], name=image))
    return len(waiting)


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
