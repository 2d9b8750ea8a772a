"""Lemmas of single words, for the rules of grounding F1: from a given table, or from spaCy (the `train` extra)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from deixis.metrics.json_places import read_json_file

Lemmas = Callable[[str], str]
"""Gives the lemma of one word on its own, in lower case."""


def table_lemmas(table: Mapping[str, str]) -> Lemmas:
    """Return a look-up: the word as written, else in lower case; a word the table lacks is its own lemma."""

    def lemma(word: str) -> str:
        found = table.get(word)
        if found is None:
            found = table.get(word.lower(), word.lower())
        return found

    return lemma


def read_lemma_table(path: Path) -> dict[str, str]:
    """Read ``{"word": "lemma", …}``."""
    file = read_json_file(path)
    table = file.object_at(file.data, [], "word to lemma")
    return {word: file.text_at(lemma, [word], "the lemma") for word, lemma in table.items()}


def classes_by_lemma(classes: Iterable[str], lemma: Lemmas) -> dict[str, str]:
    """Return for each lemma the object class that has it: how a generated word finds its class.

    Where two classes share a lemma ("glasses" and "glass"), the one that is its own lemma takes it.
    """
    names = sorted(dict.fromkeys(classes), key=lambda name: lemma(name) != name)
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(lemma(name), name)
    return found
