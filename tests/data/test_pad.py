from __future__ import annotations

import pytest
import torch

from deixis.data.pad import pad_regions
from deixis.errors import DeixisError
from deixis.types import Regions


def some(count: int, fingerprint: str = "one", frames: int = 1) -> Regions:
    return Regions(
        boxes=torch.rand(count, 4) * 10,
        features=torch.rand(count, 3).half(),
        objectness=torch.rand(count),
        size=(20, 10),
        fingerprint=fingerprint,
        class_probs=torch.rand(count, 2),
        frame=torch.arange(count) * frames // count,
        global_features=torch.rand(frames, 5),
    )


def test_real_rows_stand_first_and_the_rest_is_masked_zeros() -> None:
    first, second = some(2), some(4)
    batch = pad_regions([first, second], ["a", "b"])
    assert batch.mask.tolist() == [[True, True, False, False], [True] * 4]
    torch.testing.assert_close(batch.features[0, :2], first.features.float())
    assert batch.features.dtype == torch.float32
    assert not batch.boxes[0, 2:].any()
    torch.testing.assert_close(batch.boxes[1], second.boxes)
    torch.testing.assert_close(batch.boxes_normalised[1, :, 3], second.boxes[:, 3] / 10)
    assert batch.class_probs is not None
    assert batch.class_probs.shape == (2, 4, 2)
    assert batch.word_probs is None


def test_the_best_of_each_frame_and_its_whole_are_kept() -> None:
    clip = some(8, frames=2)
    batch = pad_regions([clip], max_regions=2)
    torch.testing.assert_close(batch.boxes[0], clip.boxes[[0, 1, 3, 4, 5, 7]])
    assert batch.frame.tolist() == [[0, 0, 0, 1, 1, 1]]
    assert batch.frame_mask is not None
    assert batch.frame_mask.tolist() == [[True, True]]


def test_extractors_do_not_mix() -> None:
    with pytest.raises(DeixisError, match="one, two"):
        pad_regions([some(1, "one"), some(1, "two")])
    with pytest.raises(DeixisError, match="no regions"):
        pad_regions([])
