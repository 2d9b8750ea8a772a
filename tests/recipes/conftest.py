"""Forty photos with lite regions, for recipes: what takes seconds to train. Drawn scenes where there is no Flickr8k."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

from deixis.data.open import open_dataset
from deixis.data.scenes import NOUNS, make_scenes
from deixis.regions.extraction.extract import extract
from deixis.regions.extraction.tasks import Settings
from deixis.training.dataset import TrainingData, load_data
from deixis.training.recipe import DataRecipe

TRAIN, VALIDATION = 32, 8

LoadData = Callable[..., TrainingData]


@pytest.fixture(scope="session")
def photos(flickr8k: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Splits of a few photos."""
    folder = tmp_path_factory.mktemp("data") / "photos"
    if flickr8k is None:
        make_scenes(folder, {"train": TRAIN, "val": VALIDATION})
        return folder
    folder.mkdir()
    for name in ("Annotations", "Sentences", "images"):
        (folder / name).symlink_to(flickr8k / name)
    dataset = open_dataset(flickr8k)
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
def classes(flickr8k: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with lists of object classes under the names that recipes give them."""
    if flickr8k is not None:
        return flickr8k.parent / "class-lists"
    folder = tmp_path_factory.mktemp("class-lists")
    for name in ("flickr30k_classes_480.txt", "anet_entities_classes_431.txt"):
        (folder / name).write_text("\n".join(NOUNS) + "\n")
    return folder


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
