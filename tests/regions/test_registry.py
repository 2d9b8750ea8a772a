"""Extractors by name: the overlap of lite's proposals, and names that mean nothing."""

from __future__ import annotations

import numpy as np
import pytest

from deixis import geometry
from deixis.errors import DeixisError
from deixis.regions.lite import LiteExtractor
from deixis.regions.registry import build_extractor, with_overlap


def test_proposals_may_overlap_as_much_as_the_name_says() -> None:
    photo = np.random.default_rng(0).integers(0, 255, (96, 128, 3), dtype=np.uint8)
    found = {
        name: build_extractor(name).extract([photo], max_regions=60)[0] for name in ("lite", "lite@0.9", "lite@0.3")
    }
    marks = {name: regions.fingerprint for name, regions in found.items()}
    assert len(set(marks.values())) == 3
    for name, most in (("lite@0.9", 0.9), ("lite@0.3", 0.3)):
        boxes = found[name].boxes[:-1]  # the whole photo may overlap anything
        overlap = geometry.iou(boxes, boxes).fill_diagonal_(0)
        assert float(overlap.max()) <= most + 1e-4
    assert len(found["lite@0.9"]) > len(found["lite@0.3"])


def test_the_overlap_the_weights_were_made_with_changes_nothing() -> None:
    made_with = LiteExtractor.load().ranking.suppress
    assert build_extractor(f"lite@{made_with:g}").fingerprint == build_extractor("lite").fingerprint


@pytest.mark.parametrize("name", ["lite@", "lite@much", "lite@0", "lite@1.5", "lite@nan"])
def test_no_overlap(name: str) -> None:
    with pytest.raises(DeixisError, match="above 0"):
        build_extractor(name)


def test_names_with_overlap() -> None:
    assert with_overlap("lite", None) == "lite"
    assert with_overlap("lite", 0.8) == "lite@0.8"
    assert with_overlap("lite:runs/mine/lite", 0.75) == "lite@0.75:runs/mine/lite"
    with pytest.raises(DeixisError, match="--suppress"):
        with_overlap("selective-search", 0.8)
