"""A small dataset for the loop: drawn scenes with regions cut from a grid, which takes a second to make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from deixis.data.open import open_dataset
from deixis.images import load_image
from deixis.regions.store.reader import RegionStore
from deixis.regions.store.writer import write_store
from deixis.training.recipe import Recipe
from deixis.types import Box, Regions

FINGERPRINT = "grid:test"
TRAIN, VALIDATION = 24, 8

GRID_RECIPE = """
about: {{title: A small captioner}}
data:
  dataset: {dataset}
  store: {store}
  limit: 24
  regions: 9
  min_count: 3
  parse: false
model: {{kind: captioner, width: 32, encoder: {{dropout: 0.2}}}}
stages:
  - name: words
    epochs: 3
    batch: 8
    objectives: [cross_entropy]
    optimizer: {{lr: 5e-3}}
    schedule: {{kind: plateau, patience: 0, factor: 0.5}}
validation: {{samples: 1}}
log_every: 1
"""


def grid_regions(pixels: np.ndarray, fingerprint: str = FINGERPRINT, things: Sequence[Box] = ()) -> Regions:
    """Things, nine cells and the whole photo, each described by the mean and spread of its colours in quarters."""
    height, width = pixels.shape[:2]
    xs, ys = np.linspace(0, width, 4).astype(int).tolist(), np.linspace(0, height, 4).astype(int).tolist()
    boxes = [tuple(map(int, box)) for box in things]
    boxes += [(xs[c], ys[r], xs[c + 1], ys[r + 1]) for r in range(3) for c in range(3)] + [(0, 0, width, height)]

    def describe(box: tuple[int, ...]) -> np.ndarray:
        cut = pixels[box[1] : box[3], box[0] : box[2]] / 255
        parts = [part for half in np.array_split(cut, 2) for part in np.array_split(half, 2, axis=1)]
        return np.concatenate([np.concatenate([p.mean((0, 1)), p.std((0, 1))]) for p in parts])

    features = torch.tensor(np.stack([describe(box) for box in boxes]), dtype=torch.float16)
    return Regions(
        boxes=torch.tensor(boxes, dtype=torch.float32),
        features=features,
        objectness=torch.ones(len(boxes), dtype=torch.float16),
        size=(width, height),
        fingerprint=fingerprint,
        global_features=features[-1:],
    )


@pytest.fixture(scope="session")
def photos(scenes: Path) -> Path:
    """What stands for photos here: anybody can draw them, so these tests need nothing beside the repository."""
    return scenes


@pytest.fixture(scope="session")
def grid_store(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the first photos of train and val."""
    dataset = open_dataset(photos)
    ids = [*dataset.ids("train")[:TRAIN], *dataset.ids("val")[:TRAIN]]

    def regions() -> Iterator[tuple[str, Regions | str]]:
        for name in sorted(ids):
            source = dataset[name].source
            yield name, grid_regions(np.asarray(load_image(source)))  # type: ignore[arg-type]

    path = tmp_path_factory.mktemp("grid") / "store"
    write_store(path, regions(), sorted(ids), FINGERPRINT, {"extractor": "grid"})
    return path


@pytest.fixture(scope="session")
def recipe_file(photos: Path, grid_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipes") / "small.yaml"
    path.write_text(GRID_RECIPE.format(dataset=photos, store=grid_store))
    return path


@pytest.fixture(scope="session")
def small_recipe(recipe_file: Path) -> Callable[..., Recipe]:
    """Make the small recipe with overrides."""
    from deixis.training.recipe_files import load_recipe

    return lambda *overrides: load_recipe(recipe_file, overrides)


@pytest.fixture(scope="session")
def rewritten(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, str], Path]:
    """Write a store again as that of another extractor, whose features have one number more."""

    def write(path: Path, fingerprint: str) -> Path:
        store = RegionStore.open(path)

        def regions() -> Iterator[tuple[str, Regions | str]]:
            for name in store:
                kept = store.get(name)
                wider = torch.cat([kept.features, kept.features[:, :1]], 1)
                yield name, replace(kept, features=wider, global_features=wider[-1:], fingerprint=fingerprint)

        target = tmp_path_factory.mktemp("grid") / "wider"
        write_store(target, regions(), list(store), fingerprint, {"extractor": "grid"})
        return target

    return write
