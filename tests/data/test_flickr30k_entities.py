"""Flickr30k Entities: markup, chains, scaling, splits, and everything that can be wrong with a file."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deixis.data import BadExampleError, open_dataset
from deixis.data.flickr30k_entities import Flickr30kEntities, read_annotation, unmark


def test_phrases_chains_and_scaled_boxes(entities: Path) -> None:
    dataset = open_dataset(entities)
    assert isinstance(dataset, Flickr30kEntities)
    assert dataset.splits == ("val",)
    example = dataset["7"]
    assert example.size == (50, 25)
    assert example.split == "val"
    first, second, third = example.captions
    assert first.text == "Two girls with red hats in a park ."
    girls, hats, park = first.phrases
    assert [first.phrase_text(p) for p in first.phrases] == ["Two girls", "red hats", "a park"]
    # The file has half of the annotated size, so every coordinate halves.
    assert girls.boxes == ((5.0, 2.5, 15.0, 12.5), (20.0, 5.0, 50.0, 25.0))
    assert hats.boxes == ((20.0, 5.0, 50.0, 25.0),), "an object with two chain ids is a box of both"
    assert girls.frames == (0, 0)
    assert hats.types == ("clothing", "other")
    assert (park.boxes, park.visual) == ((), True), "a scene without a box"
    it, game = second.phrases
    assert (it.visual, it.entity) == (False, "0")
    assert (game.visual, game.boxes) == (True, ())
    assert third.phrases == ()
    assert [thing.label for thing in example.objects] == ["1", "1"]
    assert len(dataset.problems) == 0


def test_unmark_keeps_spans_exact() -> None:
    text, phrases = unmark("Look : [/EN#5/people/animals a man]  and [/EN#6/other his , hat] !  ", "x")
    assert text == "Look : a man  and his , hat !"
    assert [(text[start:end], chain, types) for start, end, chain, types in phrases] == [
        ("a man", "5", ("people", "animals")),
        ("his , hat", "6", ("other",)),
    ]


@pytest.mark.parametrize(
    "line", ["[/EN#5/people a man walks", "[/EN#5/people a [/EN#6/other b] c]", "x /EN#9/other y]"]
)
def test_broken_markup_says_where(line: str) -> None:
    with pytest.raises(BadExampleError, match=r"file, line 3, column \d+"):
        unmark(line, "file, line 3")


@pytest.mark.parametrize("line", ["[/EN#1/a" + " " * 500_000, "[/EN#1/a " * 100_000, "[/EN#1" + "/a" * 250_000])
def test_markup_that_never_ends_takes_a_moment(line: str) -> None:
    began = time.process_time()
    with pytest.raises(BadExampleError, match="a phrase that does not end"):
        unmark(line, "a.txt, line 1")
    assert time.process_time() - began < 2  # 25,000 spaces once took 3.3 s, and four times as long for twice as many


def test_xml_of_many_levels_is_left_at_the_first_that_are_too_many(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<a>" * 500_000)
    began = time.process_time()
    with pytest.raises(BadExampleError, match="nested more than 100 deep"):
        read_annotation(tmp_path / "a.xml")
    assert time.process_time() - began < 2


def test_opening_reads_nothing_but_the_lists(entities: Path) -> None:
    (entities / "Annotations" / "7.xml").write_text("<broken")
    dataset = open_dataset(entities)
    assert dataset.ids("val") == ("7",)
    with pytest.raises(BadExampleError, match=r"7\.xml, line 1, column \d+: broken XML"):
        dataset["7"]
    assert list(dataset.examples()) == []
    assert dataset.problems.count("broken XML") == 1


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE a [<!ENTITY x "boom">]><annotation>&x;</annotation>',
        '<?xml version="1.0"?><!DOCTYPE a SYSTEM "file:///etc/passwd"><annotation/>',
        "<annotation><size><width>ten</width><height>5</height></size></annotation>",
        "<annotation><size><width>0</width><height>5</height></size></annotation>",
        "<annotation><object><bndbox/></object></annotation>",
        "<annotation><object><name>1</name><bndbox><xmin>nan</xmin></bndbox></object></annotation>",
        "",
    ],
)
def test_hostile_and_senseless_xml(entities: Path, text: str) -> None:
    (entities / "Annotations" / "7.xml").write_text(text)
    with pytest.raises(BadExampleError, match=r"7\.xml") as caught:
        open_dataset(entities)["7"]
    assert caught.value.kind == "broken XML"


def test_every_kind_of_problem_is_noted(entities: Path, photo: Callable[..., bytes]) -> None:
    (entities / "train.txt").write_text("8\n9\n10\nmissing\n../7\n")
    (entities / "Annotations" / "8.xml").write_text(
        "<annotation><size><width>100</width><height>50</height></size>"
        "<object><name>1</name><bndbox><xmin>-20</xmin><ymin>5</ymin><xmax>30</xmax><ymax>25</ymax></bndbox></object>"
        "<object><name>1</name><bndbox><xmin>30</xmin><ymin>5</ymin><xmax>30</xmax><ymax>25</ymax></bndbox></object>"
        "<object><name>1</name><bndbox><xmin>200</xmin><ymin>5</ymin><xmax>300</xmax><ymax>25</ymax></bndbox></object>"
        "</annotation>"
    )
    (entities / "Sentences" / "8.txt").write_text("[/EN#1/people A man] runs\n\n[/EN#1/people  ] sits\n")
    (entities / "images" / "8.jpg").write_bytes(photo())
    (entities / "images" / "8.png").write_bytes(photo(format="PNG"))
    (entities / "Sentences" / "9.txt").write_text("No picture\n")
    (entities / "Sentences" / "10.txt").write_text("A broken picture\n")
    (entities / "images" / "10.jpg").write_bytes(b"\xff\xd8 nothing")
    dataset = open_dataset(entities)
    examples = {example.id: example for example in dataset.examples("train")}
    assert set(examples) == {"8", "9", "10"}
    assert examples["8"].captions[0].phrases[0].boxes == ((0.0, 5.0, 30.0, 25.0),), "cut at the border"
    assert len(examples["8"].captions) == 2
    problems = dataset.problems
    assert {kind: problems.count(kind) for kind in problems.kinds} == {
        "two images with one id": 1,
        "box outside the image": 2,
        "box without area": 1,
        "empty caption": 1,
        "phrase without words": 1,
        "missing image": 1,
        "broken image": 1,
        "id in a split list that does not exist": 2,
    }
    assert "8.txt, line 2" in problems.places("empty caption")[0]
    assert len(list(dataset.examples("train"))) == 3
    assert problems.count("empty caption") == 1, "seen twice, counted once"


def test_a_photo_that_was_turned_is_noticed(entities: Path, photo: Callable[..., bytes]) -> None:
    (entities / "images" / "7.webp").write_bytes(photo((25, 50), "WEBP"))
    dataset = open_dataset(entities)
    dataset["7"]
    assert dataset.problems.count("image of another shape than annotated") == 1


def test_karpathy_splits_beside_the_official_ones(entities: Path) -> None:
    images = [{"filename": "7.jpg", "split": "train"}, {"filename": "8.jpg", "split": "test"}]
    (entities / "dataset_flickr30k.json").write_text(json.dumps({"images": images}))
    dataset = open_dataset(entities)
    assert dataset.splits == ("val", "karpathy-train", "karpathy-test")
    assert dataset.ids("karpathy-train") == ("7",)
    assert dataset.ids() == ("7", "8")


def test_without_lists_all_is_one_split(entities: Path) -> None:
    (entities / "val.txt").unlink()
    assert open_dataset(entities).ids("all") == ("7",)


def test_the_real_files(shared: Path) -> None:
    dataset = open_dataset(shared / "data" / "flickr8k-entities")
    assert [len(dataset.ids(split)) for split in ("train", "val", "test")] == [7059, 247, 285]
    examples = list(dataset.examples("val"))
    phrases = [phrase for e in examples for caption in e.captions for phrase in caption.phrases]
    assert sum(bool(phrase.boxes) for phrase in phrases) == 3239
    for example in examples:
        assert example.size is not None
        width, height = example.size
        assert min(width, height) <= 320
        for thing in example.objects:
            assert 0 <= thing.box[0] < thing.box[2] <= width + 1e-6
            assert 0 <= thing.box[1] < thing.box[3] <= height + 1e-6
    assert len(dataset.problems) == 0
