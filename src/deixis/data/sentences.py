"""Captions as sentences: tokens from the house tokeniser, phrases from character spans."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from deixis.text.tokens import tokenise
from deixis.types.sentence import Phrase, Sentence, Token


def plain_sentence(text: str) -> Sentence:
    """Return a caption without phrases."""
    text = " ".join(text.split())
    return Sentence(text, tokenise(text))


def token_span(tokens: tuple[Token, ...], start: int, end: int) -> tuple[int, int] | None:
    """Return the tokens that share a character with ``text[start:end]`` as (first, last), last not included."""
    first = bisect_right(tokens, start, key=lambda token: token.end)
    last = bisect_left(tokens, end, key=lambda token: token.start)
    return (first, last) if first < last else None


def sentence_with_phrases(text: str, phrases: Iterable[tuple[int, int, Phrase]]) -> tuple[Sentence, list[str]]:
    """Build a sentence from its text and phrases given by their characters; the token span of each is filled in.

    Returns the sentence and the phrases' texts that hold no token and were therefore left out.
    """
    tokens = tokenise(text)
    kept: list[Phrase] = []
    empty: list[str] = []
    for start, end, phrase in phrases:
        span = token_span(tokens, start, end)
        if span is None:
            empty.append(text[start:end])
            continue
        kept.append(
            Phrase(
                first=span[0],
                last=span[1],
                entity=phrase.entity,
                types=phrase.types,
                boxes=phrase.boxes,
                frames=phrase.frames,
                label=phrase.label,
                visual=phrase.visual,
            )
        )
    return Sentence(text, tokens, tuple(kept)), empty
