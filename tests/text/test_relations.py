"""Relations from hand-made parses, from real ones, and with no parser at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.errors import BadFileError
from deixis.text.parse import parse_sentences
from deixis.text.parsed import Parsed, noun_phrases, to_sentence
from deixis.text.relations import RelationVocabulary, find_relations
from deixis.text.rules.linear_relations import linear_relations
from deixis.text.tokens import tokenise
from deixis.types import Phrase, Relation, Sentence


def named(sentence: Sentence) -> list[str]:
    def head(index: int) -> str:
        at = sentence.phrases[index].head
        assert at is not None
        return sentence.tokens[at].text

    return [f"{head(r.subject)} - {r.predicate} - {head(r.object)}" for r in sentence.relations]


def parse_by_hand(rows: str) -> Parsed:
    """Each line: word, tag, lemma, head, label. Noun chunks run from a determiner to its noun."""
    words, tags, lemmas, heads, labels = zip(*(row.split() for row in rows.strip().splitlines()), strict=True)
    nouns = [at for at, tag in enumerate(tags) if tag.startswith("NN")]
    chunks = [(at - 1 if at and tags[at - 1] == "DT" else at, at + 1, at) for at in nouns]
    return Parsed(" ".join(words), tags, lemmas, tuple(int(h) for h in heads), labels, tuple(chunks))


def test_a_participle_takes_its_noun_as_subject() -> None:
    parsed = parse_by_hand(
        "A DT a 1 det\nwoman NN woman 1 ROOT\nholding VBG hold 1 acl\na DT a 4 det\ndog NN dog 2 dobj"
    )
    assert named(to_sentence(parsed)) == ["woman - holding - dog"]


def test_a_preposition_joins_two_nouns_and_a_copula_vanishes() -> None:
    parsed = parse_by_hand(
        "A DT a 1 det\ncup NN cup 2 nsubj\nis VBZ be 2 ROOT\non IN on 2 prep\nthe DT the 5 det\ntable NN table 3 pobj"
    )
    assert named(to_sentence(parsed)) == ["cup - on - table"]


def test_the_passive_is_turned_round() -> None:
    parsed = parse_by_hand(
        "dog NN dog 2 nsubjpass\nis VBZ be 2 auxpass\nheld VBN hold 2 ROOT\nby IN by 2 agent\nwoman NN woman 3 pobj"
    )
    assert named(to_sentence(parsed)) == ["woman - holding - dog"]


REAL = {
    "A woman holding a dog.": ["woman - holding - dog"],
    "There is a cup on the table.": ["cup - on - table"],
    "A man and a woman walk their dogs.": ["man - walking - dogs", "woman - walking - dogs"],
    "A man who is wearing a hat rides a bike.": ["man - wearing - hat", "man - riding - bike"],
    "Several people in front of stores.": ["people - in front of - stores"],
    "Two kids sitting next to a large dog.": ["kids - sitting next to - dog"],
    "The man is trying to catch a frisbee while holding a beer.": ["man - catching - frisbee", "man - holding - beer"],
    "A street filled with cars.": ["street - filled with - cars"],
    "A boy puts on a jacket.": ["boy - putting on - jacket"],
    "The dog that the woman is holding has a red collar.": ["woman - holding - dog", "dog - having - collar"],
    "A man throws a ball to a dog and smiles at the camera.": [
        "man - throwing - ball",
        "man - throwing to - dog",
        "man - smiling at - camera",
    ],
}


def test_real_parses() -> None:
    assert {sentence.text: named(sentence) for sentence in parse_sentences(REAL, processes=1)} == REAL


def test_relations_between_annotated_phrases() -> None:
    text = "A group of people in front of some stores"
    box = (1.0, 2.0, 3.0, 4.0)
    given = Sentence(
        text, tokenise(text), (Phrase(0, 4, "7", ("people",), (box,), (0,)), Phrase(7, 9, "8", ("scene",)))
    )
    (sentence,) = parse_sentences([given], processes=1)
    assert [(p.first, p.last, p.entity, p.boxes, p.head) for p in sentence.phrases] == [
        (0, 4, "7", (box,), 1),
        (7, 9, "8", (), 8),
    ]
    assert sentence.relations == (Relation(0, "in front of", 1),)


def read(tagged: str) -> tuple[list[str], list[str]]:
    pairs = [pair.split("/") for pair in tagged.split()]
    return [word for word, _ in pairs], [tag for _, tag in pairs]


def test_without_a_parser() -> None:
    words, tags = read(
        "a/DT man/NN and/CC a/DT woman/NN hold/VBP a/DT dog/NN in/IN front/NN of/IN a/DT store/NN "
        "while/IN a/DT boy/NN is/VBZ chased/VBN by/IN a/DT cat/NN"
    )
    phrases = [Phrase(0, 2), Phrase(3, 5), Phrase(6, 8), Phrase(11, 13), Phrase(14, 16), Phrase(19, 21)]
    assert linear_relations(words, tags, phrases) == (
        Relation(0, "holding", 2),
        Relation(1, "holding", 2),
        Relation(0, "holding in front of", 3),
        Relation(1, "holding in front of", 3),
        Relation(5, "chasing", 4),
    )


TAGS = ["NN", "VBG", "VBN", "VBZ", "IN", "WDT", "DT"]
LABELS = ["nsubj", "dobj", "prep", "pobj", "conj", "relcl", "acl", "xcomp", "advcl", "agent", "nsubjpass", "ROOT"]


@given(st.data())
def test_any_tree_gives_relations_between_its_phrases(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12))
    tags = data.draw(
        st.lists(st.sampled_from(["NN", "VBG", "VBN", "VBZ", "IN", "WDT", "DT"]), min_size=size, max_size=size)
    )
    heads = data.draw(
        st.lists(st.integers(0, size - 1), min_size=size, max_size=size)
    )  # cycles and all: no file may hang us
    labels = data.draw(st.lists(st.sampled_from(LABELS), min_size=size, max_size=size))
    words = [f"w{at}" for at in range(size)]
    parsed = Parsed(" ".join(words), tuple(tags), tuple(words), tuple(heads), tuple(labels), ())
    phrases = [Phrase(at, at + 1) for at in range(0, size, 2)]
    for relation in find_relations(parsed, tokenise(parsed.text), phrases):
        assert relation.subject != relation.object
        assert max(relation.subject, relation.object) < len(phrases)
        assert relation.predicate == relation.predicate.strip() != ""


def test_groups_and_pointing_words() -> None:
    words, tags = read("a/DT couple/NN of/IN dogs/NNS that/WDT play/VBP on/IN top/NN of/IN a/DT hill/NN")
    chunks = [(0, 2, 1), (3, 4, 3), (4, 5, 4), (7, 8, 7), (9, 11, 10)]
    assert noun_phrases(words, chunks, tags) == (Phrase(0, 4, head=1), Phrase(9, 11, head=10))


def sentence_with(*predicates: str) -> Sentence:
    return Sentence("", relations=tuple(Relation(0, predicate, 1) for predicate in predicates))


def test_the_vocabulary_keeps_what_is_frequent(tmp_path: Path) -> None:
    sentences = [sentence_with("on", "in", "in"), sentence_with("on", "in", "by", "at")]
    vocabulary = RelationVocabulary.build(sentences, more_than=1)
    assert vocabulary.predicates == ("", "in", "on")
    assert (vocabulary.id("in"), vocabulary.id("on"), vocabulary.id("by")) == (1, 2, 0)
    assert RelationVocabulary.build(sentences, more_than=0, at_most=3).predicates == ("", "in", "on", "at")
    vocabulary.save(tmp_path / "relations.json")
    assert RelationVocabulary.load(tmp_path / "relations.json") == vocabulary


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[", "broken JSON"),
        ("[]", "deixis_relations"),
        ('{"deixis_relations": 1, "more_than": 1, "predicates": ["in"]}', "predicates"),
        ('{"deixis_relations": 1, "more_than": -1, "predicates": {}}', "more_than"),
        ('{"deixis_relations": 1, "more_than": 1, "predicates": {"": 3}}', "empty"),
    ],
)
def test_bad_relation_files_are_named(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "relations.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadFileError, match=says):
        RelationVocabulary.load(tmp_path / "relations.json")
    with pytest.raises(BadFileError, match="text prepare"):
        RelationVocabulary.load(tmp_path / "none.json")
