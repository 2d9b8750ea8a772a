"""Lemmas by rule: hand-picked words, and agreement with spaCy on real captions."""

from __future__ import annotations

import pytest

from deixis.text.parsed import Parsed
from deixis.text.rules.lemmas import gerund, lemmatise, lemmatise_noun, lemmatise_verb, repair
from deixis.text.tokens import tokenise

PLURALS = {
    "dogs": "dog", "men": "man", "firemen": "fireman", "grandchildren": "grandchild", "knives": "knife", "buses": "bus",
    "dishes": "dish", "boxes": "box", "puppies": "puppy", "cookies": "cookie", "potatoes": "potato", "shoes": "shoe",
    "horses": "horse", "vases": "vase", "bookshelves": "bookshelf", "glasses": "glass", "ties": "tie",
    "zebras": "zebra",
}  # fmt: skip
SAME = ["bus", "grass", "dress", "tennis", "pants", "jeans", "clothes", "scissors", "people", "sheep", "gas", "this"]
VERBS = {
    "holding": "hold", "riding": "ride", "sitting": "sit", "running": "run", "skating": "skate", "waves": "wave",
    "carries": "carry", "catches": "catch", "was": "be", "wore": "wear", "parked": "park", "used": "use", "tied": "tie",
    "dancing": "dance", "jumped": "jump", "hanging": "hang", "staring": "stare", "lying": "lie", "looks": "look",
}  # fmt: skip
GERUNDS = ["holding", "riding", "sitting", "running", "lying", "seeing", "carrying", "playing", "throwing", "walking"]


@pytest.mark.parametrize(("word", "lemma"), PLURALS.items())
def test_plurals(word: str, lemma: str) -> None:
    assert lemmatise_noun(word) == lemma
    assert lemmatise_noun(lemma) == lemma
    assert lemmatise(word.title(), "NNS") == lemma


@pytest.mark.parametrize("word", SAME)
def test_words_that_only_look_like_plurals_stay(word: str) -> None:
    assert lemmatise_noun(word) == word


@pytest.mark.parametrize(("word", "lemma"), VERBS.items())
def test_verbs(word: str, lemma: str) -> None:
    assert lemmatise_verb(word) == lemma


@pytest.mark.parametrize("word", GERUNDS)
def test_back_to_the_ing_form(word: str) -> None:
    assert gerund(lemmatise_verb(word)) == word


def test_known_mistakes_of_the_tagger_are_put_right() -> None:
    assert repair("Clothes", "NNS", "clothe") == "clothes"
    assert repair("riding", "VBG", "rid") == "ride"
    assert repair("dogs", "NNS", "dog") == "dog"


def test_agrees_with_spacy_on_real_captions(real_parses: list[Parsed]) -> None:
    same = {"NN": 0, "VB": 0}
    seen = {"NN": 0, "VB": 0}
    for parsed in real_parses:
        for token, tag, lemma in zip(tokenise(parsed.text), parsed.tags, parsed.lemmas, strict=True):
            kind = tag[:2]
            if kind in seen and tag not in ("NNP", "NNPS"):
                seen[kind] += 1
                same[kind] += lemmatise(token.text, tag) == lemma
    assert seen["NN"] > 5_000
    assert same["NN"] / seen["NN"] > 0.99
    assert same["VB"] / seen["VB"] > 0.95
