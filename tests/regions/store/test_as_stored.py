from __future__ import annotations

from pathlib import Path

import torch

from deixis.answering.photos import read_photo
from deixis.regions.lite import LiteExtractor
from deixis.regions.store.as_stored import as_stored
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import write_store

PHOTO = Path(__file__).parents[3] / "examples" / "photos" / "coffee.jpg"


def test_fresh_regions_are_what_a_store_gives_back(tmp_path: Path) -> None:
    extractor = LiteExtractor.load()
    fresh = extractor.extract([read_photo(PHOTO)], max_regions=30)[0]
    for dense in (False, True):
        path = tmp_path / f"store-{dense}"
        write_store(path, [("coffee", fresh)], ["coffee"], extractor.fingerprint, {"extractor": "lite"}, dense=dense)
        stored, made = RegionStore.open(path).get("coffee"), as_stored(fresh, dense=dense)
        for name in ("boxes", "features", "objectness", "regionness", "class_probs", "word_probs", "feature_map"):
            assert torch.equal(getattr(stored, name), getattr(made, name)), name
    words = as_stored(fresh).word_probs
    assert words is not None
    assert int((words > 0).sum(1).max()) == 16
