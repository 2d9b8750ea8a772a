"""Forty real photos with lite regions, for recipes: what takes seconds to train and is still Flickr8k."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

from deixis.data.open import open_dataset
from deixis.regions.extraction.extract import extract
from deixis.regions.extraction.tasks import Settings
from deixis.training.dataset import TrainingData, load_data
from deixis.training.recipe import DataRecipe

TRAIN, VALIDATION = 32, 8

LoadData = Callable[..., TrainingData]


@pytest.fixture(scope="session")
def photos(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Flickr8k with splits of a few photos."""
    whole = shared / "data" / "flickr8k-entities"
    folder = tmp_path_factory.mktemp("data") / "photos"
    folder.mkdir()
    for name in ("Annotations", "Sentences", "images"):
        (folder / name).symlink_to(whole / name)
    dataset = open_dataset(whole)
    (folder / "train.txt").write_text("\n".join(dataset.ids("train")[:TRAIN]))
    (folder / "val.txt").write_text("\n".join(dataset.ids("val")[:VALIDATION]))
    return folder


@pytest.fixture(scope="session")
def store(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    dataset = open_dataset(photos)
    path = tmp_path_factory.mktemp("stores") / "store"
    settings = Settings("lite", max_regions=12)
    extract(list(dataset.ids()), lambda name: dataset[name].source, path, settings, processes=0)
    return path


@pytest.fixture(scope="session")
def classes(shared: Path) -> Path:
    return shared / "data" / "class-lists"


@pytest.fixture(scope="session")
def small_data(photos: Path, store: Path, classes: Path) -> LoadData:
    """Load the photos, with human boxes and object classes if a recipe asks for them."""

    @lru_cache(maxsize=8)
    def load(supervision: bool = False, names: str | None = None) -> TrainingData:
        recipe = DataRecipe(
            dataset=str(photos),
            store=str(store),
            regions=12,
            min_count=2,
            maps=True,
            supervision=supervision,
            classes=None if names is None else str(classes / Path(names).name),
        )
        return load_data(recipe, seed=1)

    return load
