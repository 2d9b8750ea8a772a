"""The words a model knows: ids, counts, and what each word usually is, so that answering needs no tagger."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from deixis.atomic import write_text
from deixis.errors import BadFileError
from deixis.reading.plain import read_json
from deixis.text.rules.english import NOT_GROUNDABLE
from deixis.text.rules.lemmas import lemmatise
from deixis.text.tokens import normal_word, vocabulary_words
from deixis.types import Sentence

PAD, BEGIN, END, UNKNOWN = range(4)
SPECIAL_WORDS = ("<pad>", "<s>", "</s>", "<unk>")
FORMAT_VERSION = 1

NOUN_TAGS = frozenset(["NN", "NNS", "NNP", "NNPS"])
ADJECTIVE_TAGS = frozenset(["JJ", "JJR", "JJS"])
VERB_TAGS = frozenset(["VB", "VBD", "VBG", "VBN", "VBP", "VBZ"])


class WordKind(IntEnum):
    """What ``Batch.tags`` holds. Padding, the end token and everything that is none of the others is OTHER."""

    OTHER = 0
    NOUN = 1
    VERB = 2
    ADJECTIVE = 3

    @classmethod
    def of(cls, tag: str | None) -> WordKind:
        """Return the kind of a Penn Treebank tag."""
        if tag in NOUN_TAGS:
            return cls.NOUN
        if tag in VERB_TAGS:
            return cls.VERB
        return cls.ADJECTIVE if tag in ADJECTIVE_TAGS else cls.OTHER


@dataclass(frozen=True, slots=True)
class Entry:
    """A word with what the corpus says of it."""

    word: str
    count: int
    tag: str | None = None
    """Most frequent Penn Treebank tag, or None where the corpus was not parsed."""
    lemma: str = ""
    groundable: bool = False
    """Whether the word names something one can point at."""


class Vocabulary:
    """Words and their ids: the four special words first, then the words by falling count, ties by spelling.

    The order depends only on the corpus, so the same captions always give the same ids.
    """

    def __init__(self, entries: Iterable[Entry], threshold: int = 1) -> None:
        self.threshold = threshold
        self.entries = tuple(entries)
        """Without the special words: ``entries[i]`` has id ``i + 4``."""
        self.words = SPECIAL_WORDS + tuple(entry.word for entry in self.entries)
        self._ids = {word: at for at, word in enumerate(self.words)}
        if len(self._ids) != len(self.words):
            twice = next(word for word, count in Counter(self.words).items() if count > 1)
            raise BadFileError(f"the vocabulary holds {twice!r} twice")

    @classmethod
    def build(cls, sentences: Iterable[Sentence], threshold: int = 5) -> Self:
        """Collect the words seen at least ``threshold`` times, with their majority tag and lemma where parsed."""
        counts: Counter[str] = Counter()
        tags: defaultdict[str, Counter[str]] = defaultdict(Counter)
        lemmas: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for sentence in sentences:
            for token in sentence.tokens:
                word = normal_word(token.text)
                if word is None:
                    continue
                counts[word] += 1
                if token.tag is not None:
                    tags[word][token.tag] += 1
                    lemmas[word, token.tag][token.lemma or lemmatise(word, token.tag)] += 1
        entries = []
        for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            if count < threshold:
                break
            tag = _majority(tags[word]) if word in tags else None
            lemma = (_majority(lemmas[word, tag]) if tag is not None else lemmatise(word)).lower()
            entries.append(Entry(word, count, tag, lemma, is_groundable(tag, lemma)))
        return cls(entries, threshold)

    def grown(self, sentences: Iterable[Sentence], threshold: int = 5) -> Self:
        """Return this vocabulary with the words it lacks that ``sentences`` use at least ``threshold`` times.

        They come after the words that are here, whose ids stay, so a trained model keeps what it knows.
        """
        more = [entry for entry in type(self).build(sentences, threshold).entries if entry.word not in self]
        return type(self)((*self.entries, *more), self.threshold)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self.entries, self.threshold) == (other.entries, other.threshold)

    def __hash__(self) -> int:
        return hash((self.words, self.threshold))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.entries)} words seen at least {self.threshold} times)"

    def id(self, word: str) -> int:
        """Return a word's id, or that of the unknown word."""
        return self._ids.get(word, UNKNOWN)

    def ids_in(self, other: Vocabulary) -> list[int]:
        """Return for each word its id in another vocabulary: words mean the same where they are spelt the same."""
        special = len(SPECIAL_WORDS)
        return [*range(special), *(other.id(word) for word in self.words[special:])]

    def entry(self, word: str) -> Entry | None:
        """Return what is known of a word, or None."""
        at = self._ids.get(word, UNKNOWN)
        return self.entries[at - len(SPECIAL_WORDS)] if at >= len(SPECIAL_WORDS) else None

    def lemma(self, word: str) -> str:
        """Return a word's lemma; for a word without one in the vocabulary, by rule."""
        entry = self.entry(word)
        return entry.lemma if entry is not None and entry.lemma else lemmatise(word)

    def encode(self, text: str | Sequence[str], max_words: int | None = None, *, end: bool = False) -> list[int]:
        """Return the ids of a text, or of words already cut; optionally cut to a length, and with the end added."""
        words = vocabulary_words(text) if isinstance(text, str) else text
        ids = [self.id(word) for word in words[:max_words]]
        return [*ids, END] if end else ids

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words up to the end of the sentence, without padding."""
        words = []
        for at in ids:
            if at == END:
                break
            if at not in (PAD, BEGIN):
                words.append(self.words[at])
        return words

    @cached_property
    def kinds(self) -> list[int]:
        """For each id, what the word mostly is, a :class:`WordKind`: so sampled words are tagged without a parser."""
        return [int(WordKind.OTHER)] * len(SPECIAL_WORDS) + [int(WordKind.of(entry.tag)) for entry in self.entries]

    @cached_property
    def is_noun(self) -> list[bool]:
        """For each id, whether the word is mostly a noun. Ready for ``torch.tensor``, like the lists below."""
        return self._tagged(NOUN_TAGS)

    @cached_property
    def is_adjective(self) -> list[bool]:
        """For each id, whether the word is mostly an adjective."""
        return self._tagged(ADJECTIVE_TAGS)

    @cached_property
    def is_verb(self) -> list[bool]:
        """For each id, whether the word is mostly a verb form."""
        return self._tagged(VERB_TAGS)

    @cached_property
    def is_groundable(self) -> list[bool]:
        """For each id, whether the word names something one can point at."""
        return [False] * len(SPECIAL_WORDS) + [entry.groundable for entry in self.entries]

    @cached_property
    def lemma_ids(self) -> list[int]:
        """For each id, that of the first word with its lemma: forms of one word share it."""
        first: dict[str, int] = {}
        words = enumerate(self.entries, len(SPECIAL_WORDS))
        return [
            *range(len(SPECIAL_WORDS)),
            *(first.setdefault(entry.lemma or entry.word, at) for at, entry in words),
        ]

    @property
    def lemma_table(self) -> dict[str, str]:
        """Each word with its lemma, as object classes and metrics take it."""
        return {entry.word: entry.lemma for entry in self.entries}

    def to_json(self) -> dict[str, Any]:
        """Return the form of ``vocabulary.json``."""
        return {
            "deixis_vocabulary": FORMAT_VERSION,
            "threshold": self.threshold,
            "special": list(SPECIAL_WORDS),
            "words": [asdict(entry) for entry in self.entries],
        }

    @classmethod
    def from_json(cls, data: Any, where: str = "vocabulary") -> Self:
        """Read the JSON form back; anything else is a BadFileError that names the place and the value."""
        if not isinstance(data, Mapping) or data.get("deixis_vocabulary") != FORMAT_VERSION:
            found = data.get("deixis_vocabulary") if isinstance(data, Mapping) else type(data).__name__
            raise BadFileError(f'{where} should have "deixis_vocabulary": {FORMAT_VERSION}, got {found!r}')
        if data.get("special") != list(SPECIAL_WORDS):
            raise BadFileError(f'{where}: "special" should be {list(SPECIAL_WORDS)}, got {data.get("special")!r}')
        threshold, words = data.get("threshold"), data.get("words")
        if not isinstance(threshold, int) or isinstance(threshold, bool) or threshold < 1:
            raise BadFileError(f'{where}: "threshold" should be a number of at least 1, got {threshold!r}')
        if not isinstance(words, list):
            raise BadFileError(f'{where}: "words" should be a list, got {type(words).__name__}')
        return cls([_entry(item, f"{where}: words[{at}]") for at, item in enumerate(words)], threshold)

    def save(self, path: str | Path) -> None:
        """Write ``vocabulary.json``, one word a line."""
        data = self.to_json()
        words = ",\n".join(json.dumps(word) for word in data.pop("words"))
        head = json.dumps(data)[:-1]
        write_text(path, f'{head}, "words": [\n{words}\n]}}\n')

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read ``vocabulary.json``."""
        if not Path(path).exists():
            raise BadFileError(f"there is no vocabulary at {path}: `deixis text prepare` makes one")
        return cls.from_json(read_json(Path(path)), str(path))

    def _tagged(self, tags: frozenset[str]) -> list[bool]:
        return [False] * len(SPECIAL_WORDS) + [entry.tag in tags for entry in self.entries]


def is_groundable(tag: str | None, lemma: str) -> bool:
    """Whether a word of this tag and lemma names something one can point at."""
    return tag in NOUN_TAGS and lemma not in NOT_GROUNDABLE


def _majority(counts: Counter[str]) -> str:
    return min(counts.items(), key=lambda item: (-item[1], item[0]))[0]


def _entry(item: Any, where: str) -> Entry:
    if not isinstance(item, Mapping):
        raise BadFileError(f"{where} should be an object, got {item!r}")
    expected: dict[str, tuple[type, ...]] = {"word": (str,), "count": (int,), "tag": (str, type(None)), "lemma": (str,)}
    expected["groundable"] = (bool,)
    if set(item) != set(expected):
        raise BadFileError(f"{where} should have the keys {', '.join(expected)}, got {', '.join(map(str, item))}")
    for key, types in expected.items():
        if type(item[key]) not in types:
            raise BadFileError(f"{where}.{key} should be {types[0].__name__}, got {item[key]!r}")
    if not item["word"] or item["count"] < 0:
        raise BadFileError(f"{where} should have a word and a count of at least 0, got {dict(item)!r}")
    return Entry(**item)
