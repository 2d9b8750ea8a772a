"""Object words of a data set's captions and of our generated captions, ready for grounding F1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deixis.errors import DeixisError, MissingExtraError
from deixis.metrics.files.phrases import scaled
from deixis.metrics.grounding.lemmas import Lemmas
from deixis.metrics.grounding.object_words import PredictedWord, ReferenceSentence
from deixis.text.classes import ObjectClasses, head_word
from deixis.types import Box, Example, GroundedCaption, Phrase, Sentence


@dataclass(frozen=True, slots=True, eq=False)
class DatasetWords:
    """The references of each example, the classes they were given, and what has to be said about that."""

    sentences: Mapping[str, tuple[ReferenceSentence, ...]]
    classes: ObjectClasses
    notes: tuple[str, ...]


def words_of_examples(
    examples: Sequence[Example], lemma: Lemmas | None = None, class_list: Path | Sequence[str] | None = None
) -> DatasetWords:
    """Return the annotated object words of captions whose phrases have boxes.

    The class of a phrase is the one its data set gives, else its head noun, lemmatised, if that is in ``class_list``
    (names, or a file with one class a line); without a list every head noun is a class of its own. Heads are found by
    spaCy; without it, the last word of the phrase that names a class.
    """
    if not any(phrase.boxes for example in examples for caption in example.captions for phrase in caption.phrases):
        raise DeixisError(
            "the captions of this reference have no boxes: captions can be scored on it, grounding cannot"
        )
    notes = []
    labelled = any(p.label is not None for e in examples for c in e.captions for p in c.phrases)
    captions = [caption for example in examples for caption in example.captions]
    if not labelled:
        try:
            from deixis.text.parse import corpus_cache, parse_sentences

            captions = parse_sentences(captions, 1, cache=corpus_cache())
        except MissingExtraError:
            if class_list is None:
                raise
            notes.append("spaCy is not installed: the last word of a phrase that names a class stands for its head")
    if class_list is not None:
        classes = ObjectClasses.from_list(class_list, lemma)
    elif labelled:
        names = dict.fromkeys(p.label for c in captions for p in c.phrases if p.label is not None)
        classes = ObjectClasses(names, lemma)
    else:
        classes = ObjectClasses.from_corpus(captions, threshold=1, lemmatise=lemma)
        notes.append(f"no --classes: each of the {len(classes)} head nouns of the references is a class of its own")
    found: dict[str, tuple[ReferenceSentence, ...]] = {}
    at = 0
    for example in examples:
        own = captions[at : at + len(example.captions)]
        at += len(example.captions)
        sentences = tuple(_sentence(caption, classes) for caption in own)
        # a segment of a clip without boxes was not annotated; a photo's caption without boxes is one all the same
        found[example.id] = tuple(s for s in sentences if s.words) if labelled else sentences
    return DatasetWords(found, classes, tuple(notes))


def words_of_caption(
    caption: GroundedCaption, classes: ObjectClasses, size: tuple[int, int] | None = None
) -> tuple[PredictedWord, ...]:
    """Return the object words of a generated caption, each with its first box on every frame, in pixels of ``size``."""
    words = []
    for index, word in enumerate(caption.words):
        label = classes.of_word(word.text)
        if label is None:
            continue
        firsts: dict[int, Box] = {}
        for frame, box in zip(word.frames, word.boxes, strict=True):
            firsts.setdefault(frame, box)
        boxes = tuple(firsts.values())
        if size is not None and size != caption.size:
            boxes = scaled(boxes, caption.size, size)
        words.append(PredictedWord(label, classes.lemma(label), boxes, tuple(firsts), index))
    return tuple(words)


def _sentence(caption: Sentence, classes: ObjectClasses) -> ReferenceSentence:
    entries = []
    for phrase in caption.phrases:
        if not phrase.boxes:
            continue
        head = _head(caption, phrase, classes)
        label = phrase.label if phrase.label is not None else None
        if label is None and head is not None:
            label = classes.of_word(caption.tokens[head].text)
        if head is None or label is None or label not in classes:
            continue
        frames = phrase.frames or (0,) * len(phrase.boxes)
        entries += [(head, label, box, frame) for box, frame in zip(phrase.boxes, frames, strict=True)]
    annotated = {index for index, *_ in entries}
    others = {
        token.lemma if token.lemma is not None else classes.lemma(token.text)
        for index, token in enumerate(caption.tokens)
        if index not in annotated
    }
    return ReferenceSentence.of(entries, others)


def _head(caption: Sentence, phrase: Phrase, classes: ObjectClasses) -> int | None:
    if phrase.label is not None:
        return phrase.head if phrase.head is not None else phrase.last - 1
    if any(caption.tokens[at].tag is not None for at in range(phrase.first, phrase.last)):
        return head_word(caption, phrase)
    named = [at for at in range(phrase.first, phrase.last) if classes.of_word(caption.tokens[at].text) is not None]
    return named[-1] if named else None
