"""A store of more shards than a process may open files."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from benchmarks.million import measure, write_many
from deixis.regions.store import reader


def test_a_photo_costs_the_same_in_a_larger_store(tmp_path: Path) -> None:
    small, large = measure(300, 2, 4, tmp_path / "small"), measure(3000, 2, 4, tmp_path / "large")
    assert (small["shards"], large["shards"]) == (2, 12)
    assert large["bytes_per_image"] == pytest.approx(small["bytes_per_image"], rel=0.1)


def test_more_shards_than_files_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = write_many(tmp_path / "store", 256 * 6, 2, 4)
    monkeypatch.setattr(store, "_most_shards", 2)
    first = store.get(store.ids[0])
    for name in store.ids[::100]:
        assert store.get(name).boxes.shape == (2, 4)
        assert len(store._shards) <= 2
    assert first.boxes.equal(store.get(store.ids[0]).boxes)
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert 16 <= reader._most_files() <= max(16, soft // 2)
