"""The whole way on real photos with the real commands: extract, train, evaluate, caption, refuse what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deixis.cli.main import app
from deixis.data.open import open_dataset
from deixis.errors import DeixisError
from deixis.regions.extraction.extract import extract
from deixis.regions.extraction.tasks import Settings
from deixis.regions.registry import build_extractor
from deixis.training.recipe_files import recipe_path
from deixis.training.run import Run

pytestmark = pytest.mark.recipe

BASELINE = recipe_path("captioning/baseline")
TRAIN, VALIDATION = 24, 8


def extractor() -> str:
    try:
        build_extractor("lite")
    except DeixisError:  # the weights are not in this checkout
        return "selective-search"
    return "lite"


@pytest.fixture(scope="module")
def photos(shared: Path) -> Path:
    return shared / "data" / "flickr8k-entities"


@pytest.fixture(scope="module")
def store(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    dataset = open_dataset(photos)
    names = [*dataset.ids("train")[:TRAIN], *dataset.ids("val")[:VALIDATION]]
    path = tmp_path_factory.mktemp("real") / "store"
    settings = Settings(extractor(), max_regions=36, feature_map=False)
    extract(names, lambda name: dataset[name].source, path, settings, processes=0)
    return path


@pytest.fixture(scope="module")
def smaller(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset with a val split of the extracted photos only."""
    folder = tmp_path_factory.mktemp("data") / "photos"
    folder.mkdir()
    for name in ("Annotations", "Sentences", "images"):
        (folder / name).symlink_to(photos / name)
    dataset = open_dataset(photos)
    (folder / "train.txt").write_text("\n".join(dataset.ids("train")[:TRAIN]))
    (folder / "val.txt").write_text("\n".join(dataset.ids("val")[:VALIDATION]))
    return folder


def call(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_baseline_from_photos_to_captions(
    store: Path, smaller: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    small = ["size=cpu", f"data.dataset={smaller}", f"data.store={store}", "data.min_count=2", "model.width=96"]
    small += ["stages.words.epochs=12", "stages.words.batch=4", "stages.words.schedule={kind: constant}"]
    small += ["stages.words.optimizer.lr=3e-3", "validation.every=6", "log_every=1"]
    result = json.loads(call("train", BASELINE, *small, "-o", run, "--no-tensorboard", "--json"))
    assert result["run"] == str(run)
    losses = [entry["loss"] for entry in Run(run).entries() if "loss" in entry]
    assert len(losses) == 72
    assert sum(losses[-6:]) < 0.85 * sum(losses[:6])

    report = json.loads(
        call("evaluate", run, smaller, "--split", "val", "--store", store, "--json", "-o", tmp_path / "out")
    )
    scores = {name: value for section in report["sections"] for name, value in section["scores"].items()}
    assert scores["CIDEr"] == pytest.approx(result["metrics"]["cider"], abs=1e-6)
    wanted = {"BLEU-4", "ROUGE-L", "F1_all", "F1_loc", "F1_all_per_sent", "F1_loc_per_sent", "attention_accuracy"}
    assert wanted <= set(scores)
    titles = [table["title"] for section in report["sections"] for table in section["breakdowns"]]
    assert any("Error types" in title for title in titles)
    captions = [json.loads(line) for line in (tmp_path / "out" / "captions.jsonl").read_text().splitlines()]
    assert len(captions) == VALIDATION
    again = json.loads(call("score", tmp_path / "out" / "captions.jsonl", smaller, "--split", "val", "--json"))
    rescored = {name: value for section in again["sections"] for name, value in section["scores"].items()}
    assert rescored["CIDEr"] == pytest.approx(scores["CIDEr"])
    if any(word["boxes"] for caption in captions for word in caption["words"]):  # a young captioner may name no thing
        assert rescored["F1_all"] == pytest.approx(scores["F1_all"])

    dataset = open_dataset(photos)
    photo = dataset[dataset.ids("val")[0]].source.path
    assert photo is not None
    monkeypatch.chdir(tmp_path)
    answer = json.loads(call("caption", photo, "--model", run, "--beam", "1", "--json"))
    assert answer["kind"] == "caption"
    assert answer["text"].endswith(".")
    width, height = answer["size"]
    for word in answer["words"]:
        assert answer["text"][word["start"] : word["end"]] == word["text"]
        for x1, y1, x2, y2 in word["boxes"]:
            assert 0 <= x1 <= x2 <= width
            assert 0 <= y1 <= y2 <= height
    shown = call("caption", photo, "--model", run, "--beam", "1")
    assert shown.splitlines()[0].endswith(".")


def test_supervised_bound_trains(store: Path, smaller: Path, shared: Path, tmp_path: Path) -> None:
    small = ["size=cpu", f"data.dataset={smaller}", f"data.store={store}", "data.min_count=2", "model.width=64"]
    small += [f"data.classes={shared / 'data' / 'class-lists' / 'flickr30k_classes_480.txt'}", "log_every=1"]
    small += ["stages.words.epochs=8", "stages.words.batch=4", "stages.words.schedule={kind: constant}"]
    small += ["stages.words.optimizer.lr=3e-3", "validation.every=8"]
    call("train", "captioning/supervised:gvd", *small, "-o", tmp_path / "run", "--no-tensorboard")
    entries = [entry for entry in Run(tmp_path / "run").entries() if "loss" in entry]
    for name in ("supervision", "region_classification", "grounding"):
        first, last = (sum(entry[name] for entry in part) for part in (entries[:6], entries[-6:]))
        assert last < first, name


def test_recipes_are_listed_with_paper_table_and_row() -> None:
    entries = {entry["name"]: entry for entry in json.loads(call("recipes", "--json"))}
    assert entries["captioning/baseline"]["sizes"] == ["paper", "cpu"]
    assert entries["captioning/supervised:kl"]["row"]
    shown = json.loads(call("recipes", "captioning/baseline", "size=cpu", "--json"))
    assert shown["recipe"]["model"]["width"] == 512


def test_models_that_are_none_are_named(tmp_path: Path, photos: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name, message in [
        (tmp_path / "empty", "neither a run nor a model folder"),
        (tmp_path / "nothing", "found no model"),
    ]:
        with pytest.raises(DeixisError, match=message):
            call("evaluate", name, photos)
