"""Captions as numbers, and batches of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from deixis.data.batch import RegionBatch, WordKind
from deixis.data.collate import CaptionEncoder, EncodedExample, RegionSource, collate, encode_example
from deixis.data.open import open_dataset
from deixis.errors import DeixisError
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import write_store
from deixis.text.relations import RelationVocabulary
from deixis.text.tokens import tokenise
from deixis.text.vocabulary import END, UNKNOWN, Entry, Vocabulary
from deixis.types import Phrase, Regions, Relation, Sentence

WORDS = {"a": "DT", "man": "NN", "red": "JJ", "hat": "NN", "wears": "VBZ", "'s": "POS", "dog": "NN"}


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary([Entry(word, 9, tag, word, tag == "NN") for word, tag in WORDS.items()])


def sentence(text: str, *phrases: Phrase, relations: tuple[Relation, ...] = ()) -> Sentence:
    return Sentence(text, tokenise(text), phrases, relations)


def ids(vocabulary: Vocabulary, *words: str) -> tuple[int, ...]:
    return (*(vocabulary.id(word) for word in words), END)


def test_words_are_lower_case_without_punctuation_and_end(vocabulary: Vocabulary) -> None:
    caption = CaptionEncoder(vocabulary)(sentence("A man , wears the man's “red” HAT ."))
    assert caption.words == ids(vocabulary, "a", "man", "wears", "the", "man", "'s", "red", "hat")
    assert caption.words[3] == UNKNOWN
    kinds = [WordKind.OTHER, WordKind.NOUN, WordKind.VERB, WordKind.OTHER, WordKind.NOUN, WordKind.OTHER]
    assert caption.tags == (*kinds, WordKind.ADJECTIVE, WordKind.NOUN)


def test_the_tag_of_the_sentence_wins_over_the_usual_one(vocabulary: Vocabulary) -> None:
    plain = sentence("a dog")
    tokens = (plain.tokens[0], replace(plain.tokens[1], tag="VBP"))
    assert CaptionEncoder(vocabulary)(replace(plain, tokens=tokens)).tags == (WordKind.OTHER, WordKind.VERB)


def test_cut_captions_still_end(vocabulary: Vocabulary) -> None:
    caption = CaptionEncoder(vocabulary, length=2)(sentence("A , red hat , a dog ."))
    assert caption.words == ids(vocabulary, "a", "red")
    assert len(caption.tags) == 2


def test_phrases_move_to_word_positions(vocabulary: Vocabulary) -> None:
    # tokens: 0 "  1 A  2 man  3 "  4 ,  5 wears  6 a  7 red  8 hat  9 .
    text = sentence(
        '"A man" , wears a red hat .',
        Phrase(0, 4, boxes=((1, 2, 3, 4),)),
        Phrase(6, 9, head=8),
        Phrase(9, 10),
        relations=(Relation(0, "wear", 1), Relation(1, "wear", 2)),
    )
    relations = RelationVocabulary([("wear", 200)])
    caption = CaptionEncoder(vocabulary, relations=relations)(text)
    assert [(p.first, p.last, p.head) for p in caption.phrases] == [(0, 2, 1), (3, 6, 5)]
    assert caption.relations == ((0, 1, 1),)  # the relation with the phrase that is only a full stop is gone
    assert all(phrase.boxes == () for phrase in caption.phrases)  # nobody asked for supervision
    cut = CaptionEncoder(vocabulary, length=5, relations=relations)(text)
    assert [(p.first, p.last) for p in cut.phrases] == [(0, 2)]  # its head was cut off
    assert cut.relations == ()


def test_supervision_brings_boxes_and_labels(vocabulary: Vocabulary) -> None:
    text = sentence("A man wears a hat", Phrase(0, 2, boxes=((1, 2, 3, 4), (5, 6, 7, 8)), frames=(0, 3)), Phrase(3, 5))
    encoder = CaptionEncoder(vocabulary, supervision=True, label=lambda _, phrase: 7 if phrase.first == 0 else -1)
    example = EncodedExample("x", (encoder(text),), (text.text,))
    boxes = collate([example], regions_of("x"), supervision=True).phrase_boxes
    assert boxes is not None
    assert boxes.boxes.tolist() == [[[1, 2, 3, 4], [5, 6, 7, 8]], [[0] * 4] * 2]
    assert boxes.mask.tolist() == [[True, True], [False, False]]
    assert boxes.frame.tolist() == [[0, 3], [0, 0]]
    assert boxes.label.tolist() == [7, -1]
    assert collate([example], regions_of("x")).phrase_boxes is None


def regions(name: str, count: int = 3) -> Regions:
    torch.manual_seed(len(name) * 31 + ord(name[-1]))
    return Regions(
        boxes=torch.rand(count, 4),
        features=torch.rand(count, 5).half(),
        objectness=torch.rand(count).half(),
        size=(30, 20),
        fingerprint="f",
        global_features=torch.rand(1, 5).half(),
    )


def regions_of(*names: str) -> RegionBatch:
    from deixis.data.pad import pad_regions

    return pad_regions([regions(name) for name in names], list(names))


def test_captions_point_at_their_image(vocabulary: Vocabulary) -> None:
    encoder = CaptionEncoder(vocabulary)
    man, dog = sentence("a man", Phrase(0, 2)), sentence("a red dog wears a hat", Phrase(0, 3), Phrase(4, 6))
    examples = [
        EncodedExample("x", (encoder(man), encoder(dog)), ("a man", "a dog")),
        EncodedExample("y", (encoder(dog), encoder(man), encoder(man)), ("1", "2", "3")),
    ]
    batch = collate(examples, regions_of("x", "y"))
    assert batch.words.shape == (5, 7)
    assert batch.image_of.tolist() == [0, 0, 1, 1, 1]
    assert batch.caption_ids == ("x#0", "x#1", "y#0", "y#1", "y#2")
    assert batch.words[0].tolist() == [*ids(vocabulary, "a", "man"), 0, 0, 0, 0]
    assert batch.word_mask.sum(1).tolist() == [3, 7, 7, 3, 3]
    assert batch.references == (("a man", "a dog"), ("1", "2", "3"))
    assert batch.phrases is not None
    assert batch.phrases.caption.tolist() == [0, 1, 1, 2, 2, 3, 4]
    assert batch.phrases.last.tolist() == [2, 3, 6, 3, 6, 2, 2]
    some = collate(examples, regions_of("x", "y"), [[1], [0, 2]])
    assert some.caption_ids == ("x#1", "y#0", "y#2")
    with pytest.raises(DeixisError, match="none of the images x"):
        collate(examples[:1], regions_of("x"), [[]])


def test_relations_count_on_across_captions(vocabulary: Vocabulary) -> None:
    encoder = CaptionEncoder(vocabulary, relations=RelationVocabulary([("wear", 200)]))
    both = sentence("a man wears a hat", Phrase(0, 2), Phrase(3, 5), relations=(Relation(0, "wear", 1),))
    plain = sentence("a dog", Phrase(0, 2))
    batch = collate([EncodedExample("x", (encoder(plain), encoder(both)), ("", ""))], regions_of("x"))
    assert batch.relations is not None
    assert (batch.relations.subject.tolist(), batch.relations.object.tolist()) == ([1], [2])
    assert batch.relations.predicate.tolist() == [1]


def test_two_stores_read_as_one(tmp_path: Path) -> None:
    names = {"a": ["u", "w"], "b": ["v"]}
    stores = []
    for folder, members in names.items():
        found = [(name, regions(name, 2 if name == "v" else 4)) for name in members]
        stores.append(write_store(tmp_path / folder, found, members, "f", {}))
    source = RegionSource(tuple(stores))
    batch = source.regions(["w", "v", "u"])
    assert batch.ids == ("w", "v", "u")
    assert batch.mask.sum(1).tolist() == [4, 2, 4]
    for row, name in enumerate(batch.ids):
        expected = regions(name, 2 if name == "v" else 4)
        assert torch.equal(batch.features[row, : len(expected)], expected.features.float())
        assert torch.equal(batch.boxes[row, : len(expected)], expected.boxes)
    assert batch.features[1, 2:].abs().sum() == 0
    with pytest.raises(DeixisError, match="has no regions of 'nobody'"):
        source.regions(["nobody"])
    other = write_store(tmp_path / "c", [("z", replace(regions("z"), fingerprint="g"))], ["z"], "g", {})
    with pytest.raises(DeixisError, match="holds regions of g, expected f"):
        RegionSource((stores[0], other))


def test_real_captions_survive_the_way_there_and_back(shared: Path) -> None:
    dataset = open_dataset(shared / "data" / "flickr8k-entities")
    examples = [dataset[name] for name in dataset.ids("val")[:20]]
    words = Vocabulary.build((caption for example in examples for caption in example.captions), threshold=1)
    encoder = CaptionEncoder(words, length=100)
    for example in examples:
        encoded = encode_example(example, encoder)
        for caption, numbers in zip(example.captions, encoded.captions, strict=True):
            said = words.decode(numbers.words)
            assert UNKNOWN not in numbers.words
            for phrase, kept in zip(caption.phrases, numbers.phrases, strict=True):
                inside = [token.text.lower() for token in caption.tokens[phrase.first : phrase.last]]
                assert said[kept.first : kept.last] == [word for word in inside if word in words]
                assert kept.first <= kept.head < kept.last


def test_store_type_is_what_is_read(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s", [("x", regions("x", 6))], ["x"], "f", {})
    assert isinstance(store, RegionStore)
    assert RegionSource((store,), max_regions=2).regions(["x"]).features.shape == (1, 3, 5)


def test_regions_come_in_the_pixels_people_drew_in(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s", [("x", regions("x", 6)), ("y", regions("y", 4))], ["x", "y"], "f", {})
    width, height = store.size("x")
    source = RegionSource((store,), sizes={"x": (2 * width, 3 * height)})
    plain, scaled = RegionSource((store,)).regions(["x", "y"]), source.regions(["x", "y"])
    torch.testing.assert_close(scaled.boxes[0], plain.boxes[0] * torch.tensor([2.0, 3.0, 2.0, 3.0]))
    assert scaled.sizes[0].tolist() == [2 * width, 3 * height]
    torch.testing.assert_close(scaled.boxes[1], plain.boxes[1])  # of an image whose size nobody gave
    torch.testing.assert_close(scaled.boxes_normalised, plain.boxes_normalised)
    torch.testing.assert_close(source.get("x").boxes, scaled.boxes[0])
    assert source.get("x").size == (2 * width, 3 * height)


def test_the_whole_image_may_be_left_out(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s", [("x", regions("x", 6))], ["x"], "f", {})
    every = store.batch(["x"])["boxes"][0]
    for most, kept in ((None, [0, 1, 2, 3, 4]), (2, [0, 1]), (5, [0, 1, 2, 3, 4]), (9, [0, 1, 2, 3, 4])):
        source = RegionSource((store,), most, whole=False)
        torch.testing.assert_close(source.regions(["x"]).boxes[0], every[kept])
        torch.testing.assert_close(source.get("x").boxes, every[kept])
