"""What the parser says of one text, in plain Python: made by spaCy at training time, stored, and used without it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from deixis.text.tokens import tokenise, tokens_in
from deixis.types import Phrase, Sentence, Token

NOUN_TAGS = frozenset(["NN", "NNS", "NNP", "NNPS"])
# Nouns that make one phrase with what follows "of": annotators mark "a group of people" as one thing.
GROUP_NOUNS = frozenset(
    [
        *(
            "array",
            "bunch",
            "couple",
            "crowd",
            "flock",
            "group",
            "herd",
            "line",
            "lot",
            "lots",
            "number",
            "pack",
            "pair",
        ),
        *("pile", "row", "series", "set", "stack", "team", "variety"),
    ]
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """Tags, lemmas and dependencies of the tokens that :func:`~deixis.text.tokens.tokenise` finds in ``text``."""

    text: str
    tags: tuple[str, ...]
    """Penn Treebank tags."""
    lemmas: tuple[str, ...]
    heads: tuple[int, ...]
    """For each token the token it depends on; a root depends on itself."""
    labels: tuple[str, ...]
    """For each token how it depends on its head: nsubj, dobj, prep, pobj, ..."""
    chunks: tuple[tuple[int, int, int], ...]
    """Noun chunks as (first token, last token not included, head)."""

    def to_json(self) -> str:
        """Return one line of JSON."""
        row = [self.text, self.tags, self.lemmas, self.heads, self.labels, self.chunks]
        return json.dumps(row, separators=(",", ":"))  # in ASCII, so that no text is unwritable

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Read a line back; ValueError if it is none."""
        text, tags, lemmas, heads, labels, chunks = json.loads(line)
        return cls(text, tuple(tags), tuple(lemmas), tuple(heads), tuple(labels), tuple(map(tuple, chunks)))

    def children(self, at: int, *labels: str) -> Iterator[int]:
        """Yield the tokens that depend on a token by one of the labels (or by any), in the order of the text."""
        for child, head in enumerate(self.heads):
            if head == at and child != at and (not labels or self.labels[child] in labels):
                yield child

    def head_of(self, first: int, last: int) -> int:
        """Return the head among tokens first to last: of those that hang on a token outside, the last noun."""
        tops = [at for at in range(first, last) if self.heads[at] == at or not first <= self.heads[at] < last]
        nouns = [at for at in tops if self.tags[at] in NOUN_TAGS]
        if not nouns:
            nouns = [at for at in range(first, last) if self.tags[at] in NOUN_TAGS][-1:]
        # The first noun of several is the head of a list ("a man and a woman"), the others hang on nothing inside.
        return nouns[0] if nouns else (tops[-1] if tops else last - 1)


def noun_phrases(
    words: Sequence[str], chunks: Sequence[tuple[int, int, int]], tags: Sequence[str]
) -> tuple[Phrase, ...]:
    """Turn noun chunks into phrases: groups joined with what they are groups of, pointing words left out."""
    joined: list[tuple[int, int, int]] = []
    for first, last, head in chunks:
        if tags[head] in ("WP", "WDT", "EX", "WRB"):  # who, that, there
            continue
        if _is_place(words, first, last, head):
            continue
        if joined and joined[-1][1] + 1 == first and words[first - 1].lower() == "of":
            before, _, group = joined[-1]
            if words[group].lower() in GROUP_NOUNS:
                joined[-1] = (before, last, group)
                continue
        joined.append((first, last, head))
    return tuple(Phrase(first, last, head=head) for first, last, head in joined)


def to_sentence(parsed: Parsed, given: Sentence | None = None) -> Sentence:
    """Build a sentence from a parse. Phrases that are already annotated stay, boxes and all, and get their heads."""
    from deixis.text.relations import find_relations

    plain = tokenise(parsed.text)
    tokens = tuple(
        Token(token.text, token.start, token.end, tag, lemma)
        for token, tag, lemma in zip(plain, parsed.tags, parsed.lemmas, strict=True)
    )
    if given is not None and given.phrases:
        phrases = tuple(_with_head(phrase, given, parsed, plain) for phrase in given.phrases)
    else:
        phrases = noun_phrases([token.text for token in tokens], parsed.chunks, parsed.tags)
    return Sentence(parsed.text, tokens, phrases, find_relations(parsed, tokens, phrases))


def _with_head(phrase: Phrase, given: Sentence, parsed: Parsed, tokens: tuple[Token, ...]) -> Phrase:
    if given.tokens != tokens:  # a dataset with tokens of its own: find the phrase among ours by its characters
        first, last = tokens_in(tokens, *given.phrase_span(phrase))
        phrase = replace(phrase, first=first, last=last, head=None)
    return phrase if phrase.head is not None else replace(phrase, head=parsed.head_of(phrase.first, phrase.last))


PLACES = frozenset(["back", "bottom", "center", "centre", "edge", "end", "front", "middle", "rear", "side", "top"])
BEFORE_PLACE = frozenset(["at", "by", "from", "in", "inside", "near", "on", "onto", "to", "toward", "towards"])


def is_place_before_of(words: Sequence[str], head: int) -> bool:
    """Whether a noun is the middle of a preposition of several words: "in front of", "on the side of"."""
    return words[head].lower() in PLACES and head + 1 < len(words) and words[head + 1].lower() == "of"


def _is_place(words: Sequence[str], first: int, last: int, head: int) -> bool:
    return (
        last == head + 1
        and head - first <= 1
        and first > 0
        and words[first - 1].lower() in BEFORE_PLACE
        and is_place_before_of(words, head)
    )
