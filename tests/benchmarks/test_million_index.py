"""A search index of many segments that share one file: what is measured is a real index, and a photo costs the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import million_index
from deixis.answering.load import load


def test_a_photo_costs_the_same_in_a_larger_index(
    small_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(million_index, "LARGE", 64)
    monkeypatch.setattr(million_index, "READS", 20)
    made = million_index.Made(load(str(small_bundle)), tmp_path / "made", words=20)
    small, large = (million_index.measure(made, photos) for photos in (100, 300))
    assert (small["segments"], small["photos"]) == (2, 128)
    assert (large["segments"], large["photos"]) == (5, 320)
    assert large["bytes_per_photo"] == pytest.approx(small["bytes_per_photo"], rel=0.02)
    index = made.opened()
    assert len(index) == 6 * 64  # it grew by a segment once more, and all of it is read again
    assert small["random_read_microseconds"] > 0
    assert million_index._line(large, small).startswith("       320 photos, 5 segments")
