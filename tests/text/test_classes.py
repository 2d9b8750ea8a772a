"""Words find their class by lemma: published lists are reproduced, and lists are built from a corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deixis.errors import BadFileError, DeixisError
from deixis.text.classes import ObjectClasses, head_word, read_lemmas
from deixis.text.tokens import tokenise
from deixis.types import Phrase, Sentence, Token


def tagged(text: str, tags: str, *phrases: Phrase) -> Sentence:
    tokens = zip(tokenise(text), tags.split(), strict=True)
    return Sentence(text, tuple(Token(t.text, t.start, t.end, tag) for t, tag in tokens), phrases)


@pytest.mark.parametrize(
    ("name", "size", "shared_lemmas"),
    [
        ("flickr30k_classes_480", 480, {"papers": "paper", "outfits": "outfit"}),
        ("anet_entities_classes_431", 431, {"teens": "teen", "darts": "dart"}),
    ],
)
def test_published_lists_are_reproduced(shared: Path, name: str, size: int, shared_lemmas: dict[str, str]) -> None:
    path = shared / "data/class-lists" / f"{name}.txt"
    classes = ObjectClasses.from_list(path)
    assert classes.names == tuple(path.read_text().split())
    assert len(classes) == size
    # Each class is found from its own name, but for those that share their lemma with another class.
    elsewhere = {name: classes.of_word(name) for name in classes.names if classes.of_word(name) != name}
    assert elsewhere == shared_lemmas


@pytest.mark.parametrize(
    ("word", "name"),
    [
        *[("dogs", "dog"), ("Men", "man"), ("people", "people"), ("jeans", "jeans"), ("sunglasses", "sunglass")],
        *[("graffiti", "graffitus"), ("glasses", "glass"), ("women", "woman"), ("running", None), ("he", None)],
    ],
)
def test_flickr_words(shared: Path, word: str, name: str | None) -> None:
    assert ObjectClasses.from_list(shared / "data/class-lists/flickr30k_classes_480.txt").of_word(word) == name


@pytest.mark.parametrize(("word", "name"), [("him", "he"), ("They", "they"), ("its", "its"), ("their", "they")])
def test_pronouns_count_where_the_list_has_them(shared: Path, word: str, name: str) -> None:
    found = ObjectClasses.from_list(shared / "data/class-lists/anet_entities_classes_431.txt").of_word(word)
    assert found in (name, "it") if word == "its" else found == name


def test_spellings_of_one_class(shared: Path) -> None:
    classes = ObjectClasses.from_list(shared / "data/class-lists/vg_object_vocab.txt")
    assert len(classes) == 1600
    assert classes.of_word("racquets") == "racket"
    assert classes.of_word("fridge") == "refrigerator"


def test_lemmas_from_a_table_or_a_function(tmp_path: Path) -> None:
    (tmp_path / "lemmas.json").write_text(json.dumps({"pups": "dog"}))
    table = read_lemmas(tmp_path / "lemmas.json")
    assert ObjectClasses(["dog", "cat"], table).of_word("Pups") == "dog"
    assert ObjectClasses(["dog", "cat"], table).of_word("cats") == "cat"  # not in the table: by rule
    assert ObjectClasses(["dog", "cat"], lambda word: word.removesuffix("go")).of_word("doggo") == "dog"
    assert ObjectClasses(["dog", "cat"], lambda word: word.removesuffix("go")).of_word("dogs") is None


def test_the_head_names_the_class() -> None:
    sentence = tagged("a man in a hat", "DT NN IN DT NN", Phrase(0, 5, head=1))
    (phrase,) = sentence.phrases
    assert head_word(sentence, phrase) == 1
    assert head_word(sentence, phrase, "last noun") == 4
    classes = ObjectClasses(["man", "hat"])
    assert classes.of_phrase(sentence, phrase) == "man"
    assert classes.of_phrase(sentence, phrase, "last noun") == "hat"
    assert classes.of_phrase(sentence, Phrase(0, 1, head=0)) is None
    assert classes.of_phrase(sentence, Phrase(0, 2, head=1, label="hat")) == "hat"  # the dataset's word goes first
    assert classes.of_phrase(sentence, Phrase(0, 2, head=1, label="lamp")) is None


def test_a_list_from_a_corpus() -> None:
    sentences = [
        tagged("two dogs and it", "CD NNS CC PRP", Phrase(0, 2, head=1), Phrase(3, 4, head=3)),
        tagged("a dog , it", "DT NN , PRP", Phrase(0, 2, head=1), Phrase(3, 4, head=3)),
        tagged("a cat", "DT NN", Phrase(0, 2, head=1)),
        tagged("a day", "DT NN", Phrase(0, 2, head=1, visual=False)),
        tagged("a day", "DT NN", Phrase(0, 2, head=1, visual=False)),
    ]
    assert ObjectClasses.from_corpus(sentences, threshold=2).names == ("dog",)
    assert ObjectClasses.from_corpus(sentences, threshold=1).names == ("dog", "cat")
    assert ObjectClasses.from_corpus(sentences, threshold=2, pronouns=True).names == ("dog", "it")
    with pytest.raises(DeixisError, match="lower the threshold"):
        ObjectClasses.from_corpus(sentences, threshold=9)


def test_lists_come_back_and_bad_ones_are_named(tmp_path: Path) -> None:
    path = tmp_path / "classes.txt"
    ObjectClasses(["dog", "cat"]).save(path)
    classes = ObjectClasses.from_list(path)
    assert (classes.names, classes.id("cat"), "cat" in classes, "cow" in classes) == (("dog", "cat"), 1, True, False)
    path.write_text("dog\ncat\ndog\n")
    with pytest.raises(BadFileError, match=r"classes\.txt: the object class 'dog'"):
        ObjectClasses.from_list(path)
    path.write_text("\n")
    with pytest.raises(BadFileError, match="at least one"):
        ObjectClasses.from_list(path)
    with pytest.raises(BadFileError, match="no file"):
        ObjectClasses.from_list(tmp_path / "none.txt")


@pytest.mark.parametrize(("text", "says"), [("{", "broken JSON"), ("[]", "object"), ('{"a": 1}', "'a'")])
def test_bad_lemma_tables_are_named(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "lemmas.json").write_text(text)
    with pytest.raises(BadFileError, match=says):
        read_lemmas(tmp_path / "lemmas.json")
