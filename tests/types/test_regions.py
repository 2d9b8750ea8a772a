from __future__ import annotations

import pytest
import torch

from deixis.types import Regions


def clip(frames: int, each: int) -> Regions:
    count = frames * each
    return Regions(
        boxes=torch.arange(count * 4, dtype=torch.float32).view(count, 4),
        features=torch.randn(count, 3),
        objectness=torch.linspace(1, 0, count),
        size=(64, 48),
        fingerprint="test",
        frame=torch.arange(frames).repeat_interleave(each),
        global_features=torch.randn(frames, 2),
    )


def test_a_photo_is_a_clip_of_one_frame() -> None:
    regions = Regions(torch.zeros(3, 4), torch.zeros(3, 2), torch.zeros(3), (4, 4), "test")
    assert regions.frame.tolist() == [0, 0, 0]
    assert regions.frames == 1


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="features has 2 rows for 3 boxes"):
        Regions(torch.zeros(3, 4), torch.zeros(2, 2), torch.zeros(3), (4, 4), "test")


def test_top_keeps_the_best_and_the_whole_frame_of_each_frame() -> None:
    regions = clip(frames=2, each=5)
    kept = regions.top(2)
    assert kept.boxes[:, 0].tolist() == [0, 4, 16, 20, 24, 36]
    assert kept.frame.tolist() == [0, 0, 0, 1, 1, 1]
    assert kept.global_features is regions.global_features
    assert len(regions.top(4)) == len(regions.top(99)) == 10
