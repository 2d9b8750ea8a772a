"""Readers never crash: a damaged file is read, noted, or refused with its name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deixis.data import open_dataset
from deixis.errors import BadFileError

Edit = tuple[str, float, bytes]
WORDS = [b"<", b">", b"&", b"[", b"]", b"{", b"}", b'"', b",", b":", b"\n", b"\t", b"\0", b"\xff", b"-1", b"1e999"]
WORDS += [b"null", b"[]", b"{}", b"NaN", b"</", b"/EN#", b"<object>", b"\xe2\x80", b"\r", b"99999999999999999999999"]

edits = st.lists(
    st.tuples(
        st.sampled_from(["replace", "insert", "delete", "cut", "double"]),
        st.floats(0, 1),
        st.one_of(st.sampled_from(WORDS), st.binary(min_size=1, max_size=4)),
    ),
    min_size=1,
    max_size=5,
)


def mutate(data: bytes, changes: list[Edit]) -> bytes:
    for kind, place, piece in changes:
        at = int(place * len(data))
        if kind == "replace":
            data = data[:at] + piece + data[at + len(piece) :]
        elif kind == "insert":
            data = data[:at] + piece + data[at:]
        elif kind == "delete":
            data = data[:at] + data[at + 4 * len(piece) :]
        elif kind == "double":
            data = data[:at] + data[at // 2 :]
        else:
            data = data[: max(at, 1)]
    return data


def check(root: Path, target: Path, original: bytes, changes: list[Edit]) -> None:
    target.write_bytes(mutate(original, changes))
    dataset = None
    try:
        dataset = open_dataset(root)
        for example in dataset.examples():
            for caption in example.captions:
                for token in caption.tokens:
                    assert caption.text[token.start : token.end] == token.text
                for phrase in caption.phrases:
                    assert 0 <= phrase.first < phrase.last <= len(caption.tokens)
                    assert len(phrase.boxes) == len(phrase.frames)
                    assert caption.phrase_text(phrase)
    except BadFileError as error:
        said: list[str] = [str(error)]
    else:
        said = [place for kind in dataset.problems.kinds for place in dataset.problems.places(kind, None)]
    for place in said:
        assert str(root) in place or "v_" in place, f"does not name its file: {place}"


def tolerant(count: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@pytest.mark.parametrize("name", ["Annotations/7.xml", "Sentences/7.txt", "val.txt", "images/7.webp"])
@tolerant(30)
@given(changes=edits)
def test_flickr30k_entities(entities: Path, name: str, changes: list[Edit]) -> None:
    run(entities, name, changes)


@pytest.mark.parametrize("name", ["annotations/captions_val2014.json", "annotations/instances_val2014.json"])
@tolerant(30)
@given(changes=edits)
def test_coco(coco: Path, name: str, changes: list[Edit]) -> None:
    run(coco, name, changes)


@pytest.mark.parametrize("name", ["anet_entities_cleaned_class_thresh50_trainval.json", "split_ids_anet_entities.json"])
@tolerant(30)
@given(changes=edits)
def test_activitynet_entities(anet: Path, name: str, changes: list[Edit]) -> None:
    run(anet, name, changes)


@pytest.mark.parametrize("name", ["metadata/referit_imcrop_bbox_dict.json", "ReferitData/RealGames.txt"])
@tolerant(30)
@given(changes=edits)
def test_referit(referit: Path, name: str, changes: list[Edit]) -> None:
    run(referit, name, changes)


@tolerant(50)
@given(changes=edits)
def test_metadata_jsonl(folder: Path, changes: list[Edit]) -> None:
    run(folder, "metadata.jsonl", changes)


@tolerant(50)
@given(changes=edits)
def test_tar_shards(shards: Path, changes: list[Edit]) -> None:
    run(shards, "train-000000.tar", changes)


def run(root: Path, name: str, changes: list[Edit]) -> None:
    """Damage a copy, so that each round starts from the good file."""
    copy = root.parent / "damaged"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(root, copy)
    check(copy, copy / name, (root / name).read_bytes(), changes)
