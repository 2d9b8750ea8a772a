"""Captions alone, in Entities markup or plain."""

from __future__ import annotations

import gzip
from pathlib import Path

from deixis.data import open_dataset


def test_lines_become_captions(tmp_path: Path) -> None:
    text = "5\t[/EN#1/people A man] runs .\n6\tA dog .\n5\tHe is fast .\nno tab\n5\t  \n"
    (tmp_path / "train.tsv.gz").write_bytes(gzip.compress(text.encode()))
    dataset = open_dataset(tmp_path)
    assert dataset.format == "captions-tsv"
    assert dataset.ids("train") == ("5", "6")
    example = dataset["5"]
    assert [caption.text for caption in example.captions] == ["A man runs .", "He is fast ."]
    assert example.captions[0].phrase_text(example.captions[0].phrases[0]) == "A man"
    assert example.size is None
    assert dataset.problems.count("broken sentence") == 1
    assert "line 4" in dataset.problems.places("broken sentence")[0]
    assert dataset.problems.count("empty caption") == 1


def test_the_real_file(shared: Path) -> None:
    dataset = open_dataset(shared / "data" / "flickr30k-captions")
    assert len(dataset.ids("train")) == 29283
    assert len(dataset[dataset.ids("train")[0]].captions) == 5
