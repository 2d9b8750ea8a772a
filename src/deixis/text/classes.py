"""Object classes: which words name which class, for grounding F1 and for the class of an annotated box.

A word belongs to the class whose lemma equals its own (GVD's rule). A class list can be given, such as the 480 of
Flickr30k or the 431 of ActivityNet-Entities, or be built from a corpus by how often a lemma heads a phrase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, Self

from deixis.atomic import write_text
from deixis.errors import BadFileError, DeixisError
from deixis.reading.files import read_lines
from deixis.reading.plain import read_json
from deixis.text.parsed import NOUN_TAGS
from deixis.text.rules.english import PRONOUNS
from deixis.text.rules.lemmas import lemmatise_noun
from deixis.types import Phrase, Sentence

Lemmatise = Mapping[str, str] | Callable[[str], str] | None
"""A table of lemmas, or a function; None means the rules of :mod:`deixis.text.rules.lemmas`."""

HeadRule = Literal["syntactic", "last noun"]
"""Which word of a phrase names its class: the head of the parse (Flickr30k) or the last noun (ActivityNet-Entities)."""

PRONOUN_TAGS = frozenset(["PRP", "PRP$"])


class ObjectClasses:
    """Class names in a fixed order, and the class of any word."""

    def __init__(self, names: Iterable[str], lemmatise: Lemmatise = None) -> None:
        rows = [[part.strip() for part in name.split(",")] for name in names]  # "racket,racquet": one class
        self.names = tuple(row[0] for row in rows)
        if not self.names:
            raise DeixisError("a list of object classes should hold at least one class")
        twice = [name for name, count in Counter(self.names).items() if count > 1 or not name]
        if twice:
            raise DeixisError(f"the object class {twice[0]!r} is empty or listed twice")
        self.lemma_table: Lemmatise = lemmatise
        self._ids = {name: at for at, name in enumerate(self.names)}
        self._by_lemma: dict[str, str] = {}
        spelt = [(spelling, row[0]) for row in rows for spelling in row]
        # A class that is its own lemma comes before one that only shares it: "paper" owns papers, "papers" does not.
        for spelling, name in [*spelt, *((self.lemma(spelling), name) for spelling, name in spelt)]:
            self._by_lemma.setdefault(spelling, name)

    @classmethod
    def from_list(cls, source: str | Path | Iterable[str], lemmatise: Lemmatise = None) -> Self:
        """Take names, or read them from a file with one class a line."""
        if not isinstance(source, str | Path):
            return cls(source, lemmatise)
        try:
            return cls(read_lines(Path(source)), lemmatise)
        except DeixisError as error:
            raise BadFileError(f"{source}: {error}") from None

    @classmethod
    def from_corpus(
        cls,
        sentences: Iterable[Sentence],
        threshold: int = 50,
        *,
        head: HeadRule = "syntactic",
        pronouns: bool = False,
        lemmatise: Lemmatise = None,
    ) -> Self:
        """Build the list from parsed sentences: lemmas that head a visual phrase at least ``threshold`` times.

        Pronouns count with ``pronouns`` (ActivityNet-Entities: threshold 50, last noun, pronouns).
        """
        counts: Counter[str] = Counter()
        for sentence in sentences:
            for phrase in sentence.phrases:
                at = head_word(sentence, phrase, head, pronouns=pronouns) if phrase.visual else None
                if at is not None:
                    token = sentence.tokens[at]
                    counts[token.lemma or lemmatise_noun(token.text)] += 1
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        names = [name for name, count in ranked if count >= threshold and "," not in name]
        if not names:
            raise DeixisError(
                f"no noun heads a phrase {threshold} times or more: lower the threshold (--class-threshold)"
            )
        return cls(names, lemmatise)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._ids

    def id(self, name: str) -> int:
        """Return the place of a class in the list."""
        return self._ids[name]

    def lemma(self, word: str) -> str:
        """Return the lemma of a word by the table, else by rule."""
        word = word.lower()
        if callable(self.lemma_table):
            return self.lemma_table(word)
        if self.lemma_table is not None:
            found = self.lemma_table.get(word)
            if found is not None:
                return found
        return lemmatise_noun(word)

    def of_word(self, word: str) -> str | None:
        """Return the class a word names, or None."""
        word = word.lower()
        for form in (self.lemma(word), _ODD_LEMMAS.get(word), PRONOUNS.get(word), word):
            if form is not None and (name := self._by_lemma.get(form)) is not None:
                return name
        return None

    def of_phrase(
        self, sentence: Sentence, phrase: Phrase, head: HeadRule = "syntactic", *, pronouns: bool = False
    ) -> str | None:
        """Return the class of a phrase: the one its dataset gave, else that of its head word, or None."""
        if phrase.label is not None:
            return phrase.label if phrase.label in self._ids else None
        at = head_word(sentence, phrase, head, pronouns=pronouns)
        return None if at is None else self.of_word(sentence.tokens[at].text)

    def save(self, path: str | Path) -> None:
        """Write one class a line."""
        write_text(path, "".join(f"{name}\n" for name in self.names))


# What the lemmatiser behind the published lists made of these; its own oddities, kept so that the lists work.
_ODD_LEMMAS = {"graffiti": "graffitus", "sunglasses": "sunglass", "eyeglasses": "eyeglass", "glasses": "glass"}


def head_word(
    sentence: Sentence, phrase: Phrase, rule: HeadRule = "syntactic", *, pronouns: bool = False
) -> int | None:
    """Return the token that names what a phrase shows, or None where it has no noun (or pronoun, if they count)."""
    wanted = NOUN_TAGS | PRONOUN_TAGS if pronouns else NOUN_TAGS
    nouns = [at for at in range(phrase.first, phrase.last) if sentence.tokens[at].tag in wanted]
    if rule == "syntactic" and phrase.head is not None and sentence.tokens[phrase.head].tag in wanted:
        return phrase.head
    return nouns[-1] if nouns else None


def read_lemmas(path: str | Path) -> dict[str, str]:
    """Read a table of lemmas, ``{"dogs": "dog"}``, for use without spaCy."""
    data = read_json(Path(path))
    if not isinstance(data, dict):
        raise BadFileError(f'{path} should be an object such as {{"dogs": "dog"}}, got {type(data).__name__}')
    for word, lemma in data.items():
        if not isinstance(lemma, str):
            raise BadFileError(f"{path}: the lemma of {word!r} should be a string, got {lemma!r}")
    return data
