"""Tags, heads and relations for training captions, from the kept parse; and the object class of a phrase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deixis.data.collate import Labeller
from deixis.data.locations import find
from deixis.errors import BadFileError
from deixis.reading.files import read_text
from deixis.text.parse import corpus_cache, parse_sentences
from deixis.text.vocabulary import Vocabulary
from deixis.types import Example, Phrase, Sentence


def with_parses(examples: Sequence[Example], processes: int = 2) -> list[Example]:
    """Return the examples with parsed captions. A corpus is parsed once and kept in the cache folder."""
    flat = [caption for example in examples for caption in example.captions]
    parsed = iter(parse_sentences(flat, processes, cache=corpus_cache()))
    return [replace(example, captions=tuple(next(parsed) for _ in example.captions)) for example in examples]


def object_labels(file: str | None, vocabulary: Vocabulary) -> tuple[tuple[str, ...], Labeller | None]:
    """Return the object classes of a file, one a line, and the function that gives a phrase its class, or -1.

    A phrase has the class its dataset gives it, else the class whose name is the lemma of its head (Flickr30k: the head
    noun, lemmatised, kept if it is one of the classes).
    """
    if file is None:
        return (), None
    path = find(file, "data")
    names = tuple(line.strip() for line in read_text(path).splitlines() if line.strip())
    if not names:
        raise BadFileError(f"{path} names no object class")
    number = {name: at for at, name in enumerate(names)}

    def label(sentence: Sentence, phrase: Phrase) -> int:
        if phrase.label is not None:
            return number.get(phrase.label, -1)
        token = sentence.tokens[phrase.head if phrase.head is not None else phrase.last - 1]
        return number.get((token.lemma or vocabulary.lemma(token.text.lower())).lower(), -1)

    return names, label
