from __future__ import annotations

from pathlib import Path

import pytest

from deixis.errors import BadFileError, DeixisError
from deixis.metrics.captions.hallucination import ObjectVocabulary, chair

OBJECTS = {"person": ["man", "woman", "child"], "dog": ["puppy"], "hot dog": [], "traffic light": ["stoplight"]}


def test_mentions() -> None:
    vocabulary = ObjectVocabulary(OBJECTS)
    caption = "Two men and children eat hot dogs with a dog, near traffic lights and puppies in the light."
    assert vocabulary.mentions(caption) == ["person", "person", "hot dog", "dog", "traffic light", "dog"]
    assert vocabulary.mentions("") == []


@pytest.mark.parametrize(
    ("one", "many"),
    [("cookie", "cookies"), ("bench", "benches"), ("bus", "buses"), ("knife", "knives"), ("baby", "babies"),
     ("horse", "horses"), ("glass", "glasses"), ("tie", "ties"), ("tomato", "tomatoes"), ("box", "boxes"),
     ("sheep", "sheep"), ("person", "people"), ("shoe", "shoes"), ("vase", "vases"), ("dress", "dresses")],
)  # fmt: skip
def test_plurals_are_found(one: str, many: str) -> None:
    vocabulary = ObjectVocabulary({one: [], "sky": []})
    assert vocabulary.mentions(f"the {many} and the {one}") == [one, one]


def test_rates_hand_worked() -> None:
    captions = {"1": "a man with a dog and a puppy", "2": "a woman", "3": "the sky"}
    got = chair(captions, ObjectVocabulary(OBJECTS), {"1": ["person", "hot dog"], "2": [], "3": []}, {"2": ["a child"]})
    # Image 1 names person (there), dog and dog (not there). Image 2's person is only in its reference.
    assert got.chair_i == 2 / 4
    assert got.chair_s == 1 / 3
    assert got.recall == (1 / 2 + 1) / 2
    assert got.hallucinated == {"1": ["dog", "dog"]}
    assert (got.mentions, got.captions) == (4, 3)


def test_no_mention_is_no_hallucination() -> None:
    got = chair({"1": "nothing"}, ObjectVocabulary(OBJECTS), {"1": []})
    assert (got.chair_i, got.chair_s, got.recall) == (0, 0, 0)


def test_wrong_input_is_named() -> None:
    vocabulary = ObjectVocabulary(OBJECTS)
    with pytest.raises(DeixisError, match="no captions"):
        chair({}, vocabulary, {})
    with pytest.raises(DeixisError, match="image '1' has neither objects nor references"):
        chair({"1": "a dog"}, vocabulary, {})
    with pytest.raises(DeixisError, match="image '1' has the object 'zebra', which is not in the vocabulary"):
        chair({"1": "a dog"}, vocabulary, {"1": ["zebra"]})
    with pytest.raises(DeixisError, match="'men' is listed for the object 'person' and for 'guy'"):
        ObjectVocabulary({**OBJECTS, "guy": ["men"]})
    with pytest.raises(DeixisError, match="must be a list"):
        ObjectVocabulary({"dog": "puppy"})
    with pytest.raises(DeixisError, match="empty"):
        ObjectVocabulary({})
    with pytest.raises(DeixisError, match=r"'\.', which is empty"):
        ObjectVocabulary({"dog": ["."]})


def test_vocabularies_from_files(tmp_path: Path) -> None:
    (tmp_path / "objects.txt").write_text("person, man, woman\ntraffic light\n\n")
    assert ObjectVocabulary.load(tmp_path / "objects.txt").mentions("men at traffic lights") == [
        "person",
        "traffic light",
    ]
    (tmp_path / "objects.json").write_text('{"dog": ["puppy"]}')
    assert ObjectVocabulary.load(tmp_path / "objects.json").mentions("puppies") == ["dog"]
    (tmp_path / "wrong.json").write_text('{"dog": "puppy"}')
    with pytest.raises(BadFileError, match="an object of lists"):
        ObjectVocabulary.load(tmp_path / "wrong.json")
    with pytest.raises(BadFileError, match="there is no file"):
        ObjectVocabulary.load(tmp_path / "none.json")
