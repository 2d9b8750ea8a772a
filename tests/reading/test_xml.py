"""XML of strangers: trees of the usual depth, and one clear line for everything else."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from deixis.errors import BadFileError
from deixis.reading.xml import MAX_DEPTH, read_xml


def written(folder: Path, data: bytes) -> Path:
    (folder / "a.xml").write_bytes(data)
    return folder / "a.xml"


def test_a_tree_is_read(tmp_path: Path) -> None:
    root = read_xml(written(tmp_path, "<a><b name='é'>x</b><b/></a>".encode()))
    assert [(child.tag, child.get("name"), child.text) for child in root] == [("b", "é", "x"), ("b", None, None)]
    deep = MAX_DEPTH - 1
    assert read_xml(written(tmp_path, b"<a>" * deep + b"</a>" * deep)).tag == "a"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<a><b></a>", "line 1, column 8: broken XML: mismatched tag"),
        (b"", "broken XML"),
        (b"<a>\x00</a>", "broken XML"),
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "declares a document type"),
        ("<?xml version='1.0' encoding='utf-16'?><!DOCTYPE a><a/>".encode("utf-16"), "not UTF-8"),
        (b"<a>" * (MAX_DEPTH + 1), "nested more than 100 deep"),
    ],
)
def test_what_is_no_annotation_is_one_line(data: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadFileError, match=said):
        read_xml(written(tmp_path, data))


def test_millions_of_levels_cost_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, b"<a>" * 3_000_000)
    began = time.process_time()
    with pytest.raises(BadFileError, match="deep"):
        read_xml(file)
    assert time.process_time() - began < 1
