"""Splits drawn by name: shares, stability, and that every way of asking agrees."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.data import open_dataset
from deixis.data.random_splits import SHARES, drawn, drawn_split, is_undivided
from deixis.errors import DeixisError


def test_the_shares_come_out() -> None:
    ids = [f"photo-{number}.jpg" for number in range(20_000)]
    for split, share in SHARES.items():
        deviation = (share * (1 - share) / len(ids)) ** 0.5
        assert len(drawn(ids, split)) / len(ids) == pytest.approx(share, abs=4 * deviation)


@given(st.lists(st.text(), unique=True), st.lists(st.text(), unique=True))
def test_a_photo_stays_where_it_is_when_others_come(first: list[str], more: list[str]) -> None:
    parts = {split: drawn(first, split) for split in SHARES}
    assert sorted(id for part in parts.values() for id in part) == sorted(first)
    for split, part in parts.items():
        assert set(part) <= set(drawn([*more, *first], split))


def test_only_datasets_without_splits_are_drawn() -> None:
    assert is_undivided(["all"])
    assert is_undivided(["holidays"])
    assert not is_undivided(["val2017"])
    assert not is_undivided(["train", "test"])


def test_readers_offer_them(tmp_path: Path, photo: Callable[..., bytes]) -> None:
    names = [f"{number:03d}" for number in range(40)]
    (tmp_path / "captions.csv").write_text("\n".join(f"{name}.jpg,Photo {name}." for name in names))
    for name in names:
        (tmp_path / f"{name}.jpg").write_bytes(photo())
    dataset = open_dataset(tmp_path)
    assert dataset.splits == ("all",)
    assert dataset.drawn_splits == ("train", "val", "test")
    for split in dataset.drawn_splits:
        expected = [f"{name}.jpg" for name in names if drawn_split(f"{name}.jpg") == split]
        assert [example.id for example in dataset.examples(split)] == list(dataset.ids(split)) == expected
    with pytest.raises(DeixisError, match="no split 'dev'"):
        dataset.ids("dev")


def test_shards_are_drawn_from_too(tmp_path: Path, photo: Callable[..., bytes]) -> None:
    with tarfile.open(tmp_path / "000.tar", "w") as archive:
        for number in range(30):
            for ending, data in (("jpg", photo()), ("txt", b"A photo.")):
                member = tarfile.TarInfo(f"{number:03d}.{ending}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    dataset = open_dataset(tmp_path)
    for split in dataset.drawn_splits:
        assert [example.id for example in dataset.examples(split)] == list(dataset.ids(split))
    assert len(dataset.ids("train")) == sum(drawn_split(f"{number:03d}") == "train" for number in range(30))
