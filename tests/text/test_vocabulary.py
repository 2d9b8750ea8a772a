"""Ids are a matter of counts and spelling alone, files come back as they went, and bad files are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.errors import BadFileError
from deixis.text.tokens import tokenise
from deixis.text.vocabulary import BEGIN, END, PAD, SPECIAL_WORDS, UNKNOWN, Entry, Vocabulary
from deixis.types import Sentence, Token


def sentence(text: str, tags: str = "", lemmas: str = "") -> Sentence:
    tokens = tokenise(text)
    if not tags:
        return Sentence(text, tokens)
    marks = zip(tokens, tags.split(), lemmas.split(), strict=True)
    return Sentence(text, tuple(Token(t.text, t.start, t.end, tag, lemma) for t, tag, lemma in marks))


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary.build(
        [
            sentence("Two dogs run.", "CD NNS VBP .", "two dog run ."),
            sentence("A run, a dog", "DT NN , DT NN", "a run , a dog"),
            sentence("dogs run in front", "NNS VBP IN NN", "dog run in front"),
        ],
        threshold=1,
    )


def test_ids_follow_count_then_spelling(vocabulary: Vocabulary) -> None:
    assert vocabulary.words == (*SPECIAL_WORDS, "run", "a", "dogs", "dog", "front", "in", "two")
    assert vocabulary.encode("A dog, two cats!") == [5, 7, 10, UNKNOWN]
    assert vocabulary.encode(["dogs", "run", "in"], max_words=2, end=True) == [6, 4, END]


def test_words_carry_their_majority_tag_and_lemma(vocabulary: Vocabulary) -> None:
    assert vocabulary.entry("run") == Entry("run", 3, "VBP", "run", False)
    assert vocabulary.entry("dogs") == Entry("dogs", 2, "NNS", "dog", True)
    assert vocabulary.entry("front") == Entry("front", 1, "NN", "front", False)  # a place, not a thing
    assert vocabulary.entry("cat") is None
    assert vocabulary.entry("<pad>") is None
    assert vocabulary.lemma("dogs") == "dog"
    assert vocabulary.lemma("cats") == "cat"  # by rule
    nouns = {word for word, noun in zip(vocabulary.words, vocabulary.is_noun, strict=True) if noun}
    verbs = {word for word, verb in zip(vocabulary.words, vocabulary.is_verb, strict=True) if verb}
    groundable = {word for word, yes in zip(vocabulary.words, vocabulary.is_groundable, strict=True) if yes}
    assert (nouns, verbs, groundable) == ({"dogs", "dog", "front"}, {"run"}, {"dogs", "dog"})
    assert not any(vocabulary.is_adjective)


def test_the_threshold_counts_occurrences() -> None:
    sentences = [sentence("a b b c c c")]
    assert Vocabulary.build(sentences, threshold=2).words[4:] == ("c", "b")
    assert Vocabulary.build(sentences, threshold=4).words == SPECIAL_WORDS


def test_decode_stops_at_the_end(vocabulary: Vocabulary) -> None:
    assert vocabulary.decode([BEGIN, 5, 7, UNKNOWN, END, 4, PAD]) == ["a", "dog", "<unk>"]


words = st.text(min_size=1).filter(lambda word: word not in SPECIAL_WORDS)
entries = st.lists(
    st.builds(Entry, words, st.integers(0, 10**6), st.none() | st.sampled_from(["NN", "VBG"]), words, st.booleans()),
    unique_by=lambda entry: entry.word,
)


@given(entries, st.integers(1, 100))
def test_json_and_words_come_back(tmp_path_factory: pytest.TempPathFactory, given: list[Entry], threshold: int) -> None:
    vocabulary = Vocabulary(given, threshold)
    assert Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json()))) == vocabulary
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.json"
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary
    assert list(path.parent.iterdir()) == [path]
    known = [entry.word for entry in given]
    assert vocabulary.decode(vocabulary.encode(known, end=True)) == known


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"deixis_vocabulary": 9}, "got 9"),
        ({"special": ["<pad>"]}, "special"),
        ({"threshold": 0}, "threshold"),
        ({"threshold": True}, "threshold"),
        ({"words": {}}, "a list, got dict"),
        ({"words": ["dog"]}, r"words\[0\] should be an object, got 'dog'"),
        ({"words": [{"word": "dog"}]}, r"words\[0\] should have the keys"),
        ({"words": [{"word": "dog", "count": "3", "tag": None, "lemma": "dog", "groundable": True}]}, "count"),
        ({"words": [{"word": "", "count": 3, "tag": None, "lemma": "dog", "groundable": True}]}, "a word"),
        ({"words": [{"word": "a", "count": 3, "tag": None, "lemma": "a", "groundable": False}] * 2}, "'a' twice"),
    ],
)
def test_bad_files_are_named(vocabulary: Vocabulary, change: dict[str, object], says: str, tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_text(json.dumps(vocabulary.to_json() | change), encoding="utf-8")
    with pytest.raises(BadFileError, match=says):
        Vocabulary.load(path)


def test_missing_and_broken_files_say_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match="deixis text prepare"):
        Vocabulary.load(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(BadFileError, match=r"broken\.json, line 1"):
        Vocabulary.load(broken)


def test_forms_of_one_word_share_an_id() -> None:
    words = (("dogs", "dog"), ("ran", "run"), ("dog", "dog"), ("odd", ""))
    vocabulary = Vocabulary([Entry(word, 9, "NN", lemma) for word, lemma in words])
    first = len(SPECIAL_WORDS)
    assert vocabulary.lemma_ids == [*range(first), first, first + 1, first, first + 3]
