"""Tar shards: streaming, random access, safe names, damage."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from deixis.data import open_dataset
from deixis.errors import BadFileError
from deixis.images import load_image
from deixis.types import ImageFile


def test_stream_and_random_access_agree(shards: Path) -> None:
    dataset = open_dataset(shards)
    assert dataset.format == "webdataset"
    assert dataset.splits == ("train", "val")
    streamed = list(dataset.examples("train"))
    assert [example.id for example in streamed] == ["0001", "0002", "0003"]
    fresh = open_dataset(shards)
    for example in streamed:
        again = fresh[example.id]
        assert (again.captions, again.size, again.objects) == (example.captions, example.size, example.objects)
    bus, two, three = streamed
    assert bus.captions[0].phrases[0].boxes == ((0.0, 0.0, 50.0, 50.0),)
    assert [caption.text for caption in two.captions] == ["First.", "Second."]
    assert (bus.size, two.size, three.size) == ((100, 50), (30, 20), (10, 10))
    for example in streamed:
        assert isinstance(example.source, ImageFile)
        assert load_image(example.source).size == example.size
        assert pickle.loads(pickle.dumps(example.source)).read() == example.source.read(), "workers need it"  # type: ignore[misc]


def test_problems(shards: Path) -> None:
    dataset = open_dataset(shards)
    assert len(list(dataset.examples())) == 4
    problems = dataset.problems
    assert {kind: problems.count(kind) for kind in problems.kinds} == {
        "unsafe member name": 1,
        "two images with one id": 1,
        "missing image": 1,
    }


def test_a_shard_cut_off_keeps_what_came_before(shards: Path) -> None:
    shard = shards / "train-000000.tar"
    data = shard.read_bytes()
    shard.write_bytes(data[: data.index(b"0002.png") + 540])
    dataset = open_dataset(shard)
    assert dataset.ids() == ("0001",)
    assert dataset.problems.count("broken shard") == 1


def test_no_archive_at_all(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"nothing" * 300)
    with pytest.raises(BadFileError, match=r"x\.tar is not a tar archive"):
        open_dataset(tmp_path).ids()
