"""Lemmas of single words, for the rules of grounding F1: from a given table, or from spaCy (the `train` extra)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from deixis.errors import MissingExtraError
from deixis.metrics.files.json_lines import read_json_file

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


def parsed_lemmas(words: Iterable[str]) -> tuple[Lemmas, str]:
    """Return the lemmas spaCy gives each word on its own, and a name for where they come from.

    Without spaCy the rules of `deixis.text.rules.lemmas` stand in, which know nouns only; the name says so.
    """
    from deixis.text.parse import parse_texts, parser_name
    from deixis.text.rules.lemmas import lemmatise_noun

    different = sorted({word.lower() for word in words if word.strip()})
    try:
        name = parser_name()
        table = {word: parsed.lemmas[0] for word, parsed in parse_texts(different, 1).items() if parsed.lemmas}
    except MissingExtraError:
        return lemmatise_noun, "rules for nouns (spaCy is not installed)"
    return table_lemmas(table), f"spaCy {name}"
