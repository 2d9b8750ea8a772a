"""From what people type to sentences with phrases: single phrases, a whole sentence, or phrases of a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from deixis.errors import DeixisError
from deixis.text.rules.chunker import chunk
from deixis.text.tokens import normal_word, tokenise, tokens_in
from deixis.text.vocabulary import ADJECTIVE_TAGS, NOUN_TAGS, VERB_TAGS, Vocabulary
from deixis.types import GroundedPhrase, Phrase, Sentence

LONGEST_PHRASE = 2_000
"""Characters; a phrase is a few words, and a file pasted by mistake should say so rather than be read."""
_TELLS = NOUN_TAGS | ADJECTIVE_TAGS | VERB_TAGS | {"PRP", "CD"}


def asked_sentences(
    phrases: Sequence[str] | str | None, sentence: str | None, vocabulary: Vocabulary
) -> list[Sentence]:
    """Return what is looked for as sentences: each phrase by itself, or as parts of the sentence it stands in."""
    phrases = [phrases] if isinstance(phrases, str) else phrases
    if sentence is not None:
        return [phrases_of_sentence(sentence, vocabulary, phrases)]
    if not phrases:
        raise DeixisError("nothing to look for: give phrases, such as 'a man', or a sentence")
    return single_phrases(phrases, vocabulary)


def single_phrases(phrases: Sequence[str], vocabulary: Vocabulary) -> list[Sentence]:
    """Return each phrase as a sentence that consists of it."""
    found = []
    for at, text in enumerate(phrases):
        _check(text, f"phrase {at + 1} of {len(phrases)}")
        tokens = tokenise(text)
        found.append(chunk(Sentence(text, tokens, (Phrase(0, len(tokens)),)), vocabulary))
    return found


def phrases_of_sentence(sentence: str, vocabulary: Vocabulary, phrases: Sequence[str] | None = None) -> Sentence:
    """Return a sentence with its noun phrases, or with the given phrases where they stand in it."""
    _check(sentence, "the sentence")
    if phrases is None:
        return chunk(sentence, vocabulary)
    tokens = tokenise(sentence)
    found: list[Phrase] = []
    taken: dict[str, int] = {}
    for at, text in enumerate(phrases):
        _check(text, f"phrase {at + 1} of {len(phrases)}")
        words = r"\s+".join(re.escape(word) for word in text.split())
        # The same phrase given twice means its first and its second place: "a man … a man".
        place = re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE).search(sentence, taken.get(text.lower(), 0))
        if place is None:
            again = " once more" if text.lower() in taken else ""
            raise DeixisError(f"the phrase {text!r} does not stand in the sentence {sentence!r}{again}")
        taken[text.lower()] = place.end()
        found.append(Phrase(*tokens_in(tokens, *place.span())))
    return chunk(Sentence(sentence, tokens, tuple(found)), vocabulary)


def as_asked(sentence: Sentence, vocabulary: Vocabulary) -> Sentence:
    """Return a sentence with annotated phrases as it would be read from what people type: same tags, same heads."""
    bare = tuple(replace(token, tag=None, lemma=None) for token in sentence.tokens)
    phrases = tuple(replace(phrase, head=None) for phrase in sentence.phrases)
    return chunk(Sentence(sentence.text, bare, phrases), vocabulary)


def found_from(answer: GroundedPhrase, threshold: float | None) -> GroundedPhrase:
    """Say "found" of what is at least so probably there; None leaves it to the grounder, and so does no probability."""
    if threshold is None or answer.presence is None:
        return answer
    return replace(answer, found=answer.presence >= threshold)


def doubtful_where_unknown(
    answer: GroundedPhrase, sentence: Sentence, phrase: Phrase, words: Vocabulary
) -> GroundedPhrase:
    """Say "not found" of a phrase none of whose telling words the model knows: whatever it answers is a guess."""
    inside = sentence.tokens[phrase.first : phrase.last]
    telling = [token for token in inside if token.tag in _TELLS]
    known = any(normal_word(token.text) in words for token in telling)
    presence = None if answer.presence is None else 0.0
    return answer if known else replace(answer, found=False, score=0.0, presence=presence)


def _check(text: object, what: str) -> None:
    if not isinstance(text, str):
        raise DeixisError(f"{what} should be text, got {type(text).__name__}")
    if not text.strip():
        raise DeixisError(f"{what} is empty: say what to look for, such as 'a man'")
    if len(text) > LONGEST_PHRASE:
        raise DeixisError(f"{what} has {len(text):,} characters; at most {LONGEST_PHRASE:,} are read")
