"""The chunker needs a vocabulary and nothing else, and finds nearly the phrases spaCy finds."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.text.parsed import Parsed, to_sentence
from deixis.text.rules.chunker import chunk
from deixis.text.tokens import tokenise
from deixis.text.vocabulary import Entry, Vocabulary
from deixis.types import Phrase, Sentence

KNOWN = {
    "man": "NN", "men": "NNS", "people": "NNS", "dog": "NN", "dogs": "NNS", "street": "NN", "snow": "NN", "car": "NN",
    "small": "JJ", "black": "JJ", "brown": "JJ", "white": "JJ",
    "smiling": "VBG", "surf": "NN", "surfing": "VBG", "run": "VB",
    "holding": "VBG", "covered": "VBN", "parked": "VBN", "stand": "VB", "standing": "VBG", "fruit": "NN", "hat": "NN",
    "group": "NN", "very": "RB", "plays": "VBZ", "guitar": "NN", "waves": "NNS", "waving": "VBG", "flag": "NN",
}  # fmt: skip
LEMMAS = {"men": "man", "holding": "hold", "dogs": "dog", "waves": "wave"}


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary([Entry(word, 9, tag, LEMMAS.get(word, word)) for word, tag in KNOWN.items()])


CASES = {
    "A smiling man is holding a small, brown dog.": ["A smiling man", "a small, brown dog"],
    "a man's hat on the snow covered street": ["a man's hat", "the snow covered street"],
    "People surf in front of parked cars": ["People", "parked cars"],
    "a fruit stand": ["a fruit stand"],
    "a man waves a flag at a group of men": ["a man", "a flag", "a group of men"],
    "He plays the guitar for her": ["He", "the guitar", "her"],
    "two very small black and white dogs run": ["two very small black and white dogs"],
    "it's a wugs and three gutchecks": ["it", "a wugs", "three gutchecks"],  # words nobody knows
    "there is a man who plays": ["a man"],
    "": [],
}


@pytest.mark.parametrize("text", CASES)
def test_phrases_by_hand(text: str, vocabulary: Vocabulary) -> None:
    sentence = chunk(text, vocabulary)
    assert [sentence.phrase_text(phrase) for phrase in sentence.phrases] == CASES[text]


def test_tags_lemmas_heads_and_relations(vocabulary: Vocabulary) -> None:
    sentence = chunk("Two men holding dogs", vocabulary)
    assert [token.tag for token in sentence.tokens] == ["CD", "NNS", "VBG", "NNS"]
    assert [token.lemma for token in sentence.tokens] == ["two", "man", "hold", "dog"]
    assert [phrase.head for phrase in sentence.phrases] == [1, 3]
    assert [(r.subject, r.predicate, r.object) for r in sentence.relations] == [(0, "holding", 1)]


def test_annotated_phrases_stay(vocabulary: Vocabulary) -> None:
    text = "A man in a hat holding a dog"
    given = Sentence(text, tokenise(text), (Phrase(0, 5, "1"), Phrase(6, 8, "2", boxes=((0.0, 0.0, 9.0, 9.0),))))
    sentence = chunk(given, vocabulary)
    assert [(p.first, p.last, p.entity, p.head) for p in sentence.phrases] == [(0, 5, "1", 1), (6, 8, "2", 7)]
    assert sentence.phrases[1].boxes == given.phrases[1].boxes


@given(st.text() | st.lists(st.sampled_from([*KNOWN, "the", "and", "'s", "of", "in", ",", "is"])).map(" ".join))
def test_any_text_gives_phrases_that_lie_in_it(text: str) -> None:
    sentence = chunk(text, Vocabulary([Entry(word, 9, tag, word) for word, tag in KNOWN.items()]))
    end = 0
    for phrase in sentence.phrases:
        assert end <= phrase.first < phrase.last <= len(sentence.tokens)
        assert phrase.head is not None
        assert phrase.first <= phrase.head < phrase.last
        end = phrase.last
    for relation in sentence.relations:
        assert relation.subject != relation.object
        assert max(relation.subject, relation.object) < len(sentence.phrases)


def test_agrees_with_spacy_on_real_captions(real_parses: list[Parsed]) -> None:
    sentences = [to_sentence(parsed) for parsed in real_parses]
    vocabulary = Vocabulary.build(sentences[::2], threshold=2)  # half of 1,600 captions: far smaller than a real one
    both = ours = theirs = 0
    for sentence in sentences[1::2]:
        expected = {(phrase.first, phrase.last) for phrase in sentence.phrases}
        found = {(phrase.first, phrase.last) for phrase in chunk(sentence.text, vocabulary).phrases}
        both, ours, theirs = both + len(expected & found), ours + len(found), theirs + len(expected)
    assert theirs > 2_000
    assert 2 * both / (ours + theirs) > 0.88


def test_needs_no_spacy() -> None:
    code = "import sys; import deixis.text.rules.chunker, deixis.text.classes; sys.exit('spacy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
