"""A store of whole things, made from one with parts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from deixis.errors import DeixisError
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import write_store
from deixis.regions.whole_things import whole_rows, write_whole_things
from deixis.types import Regions

OBJECTNESS = [0.9, 0.05, 0.5, 0.7, 0.0]  # the last is the whole photo


def photo(**more: object) -> Regions:
    boxes = torch.arange(20, dtype=torch.float32).reshape(5, 4)
    return Regions(
        boxes,
        torch.eye(5),
        torch.tensor(OBJECTNESS),
        (40, 30),
        "made:1",
        global_features=torch.ones(1, 3),
        **more,  # type: ignore[arg-type]
    )


def test_whole_things_come_by_objectness_and_the_photo_stays() -> None:
    assert whole_rows(photo(), 0.2).tolist() == [0, 3, 2, 4]
    assert whole_rows(photo(), 0.6).tolist() == [0, 3, 4]
    assert whole_rows(photo(), 0.2, most=1).tolist() == [0, 4]
    assert whole_rows(photo(), 0.95).tolist() == [4]
    clip = Regions(
        torch.rand(4, 4), torch.eye(4), torch.tensor([0.3, 0.0, 0.8, 0.0]), (40, 30), "made:1",
        frame=torch.tensor([0, 0, 1, 1]),
    )  # fmt: skip
    assert whole_rows(clip, 0.5).tolist() == [1, 2, 3]


def test_a_store_is_thinned_and_has_a_name_of_its_own(tmp_path: Path) -> None:
    images: list[tuple[str, Regions | str]] = [("a", photo()), ("b", "its bytes are no photo"), ("c", photo())]
    old = write_store(tmp_path / "all", images, ["a", "b", "c"], "made:1", {"max_regions": 4})
    made = write_whole_things(old, tmp_path / "whole", objectness=0.6)
    again = RegionStore.open(tmp_path / "whole")
    assert list(again) == ["a", "c"]
    assert [entry["id"] for entry in again.header.failed] == ["b"]
    assert again.get("c").features.argmax(1).tolist() == [0, 3, 4]
    assert again.get("c").boxes.tolist() == photo().boxes[[0, 3, 4]].tolist()
    assert made.fingerprint == "made:1+whole0.6"
    with pytest.raises(DeixisError):  # what learned from parts does not take it
        again.require(old.fingerprint)


def test_a_wrong_bound_is_refused(tmp_path: Path) -> None:
    old = write_store(tmp_path / "all", [("a", photo())], ["a"], "made:1", {})
    with pytest.raises(DeixisError, match=r"between 0 and 1, got 1\.5"):
        write_whole_things(old, tmp_path / "whole", objectness=1.5)
    with pytest.raises(DeixisError, match="at least 1, got 0"):
        write_whole_things(old, tmp_path / "whole", most=0)
    assert not (tmp_path / "whole").exists()
