"""Every row of every table of papers 1 to 3 is a recipe, and every recipe builds and takes a step."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch

from deixis.models.checkpoint import save_model
from deixis.training.dataset import TrainingData
from deixis.training.recipe_files import find_recipe, read_recipe, shipped_recipes
from deixis.training.stage import Moment, build_model, build_stage

LoadData = Callable[..., TrainingData]

# What the tables list, in the words of the recipes. Rows of systems that are nobody's method here are named below.
TABLES = {
    "Cyclical": {
        "Table 1": {
            "Up-Down", "GVD (w/o SelfAttn)", "GVD, supervised", "Baseline, supervised", "Baseline",
            "Cyclical, (0.6, 0.4)",
        },
        "Table 2": {
            "GVD, clips", "GVD (w/o SelfAttn), clips", "GVD, supervised, clips", "Baseline, supervised, clips",
            "Baseline, clips", "Cyclical, clips",
        },
        "Table 3": {
            f"{detector} detector, {row}"
            for detector in ("perfect", "grounding-biased")
            for row in ("Baseline, supervised", "Baseline", "Cyclical")
        },
        "Table 4": {"Baseline (Unsup.)", "Cyclical, (0.5, 0.5)", "Attention consistency", "Localizer using h^A"},
        "Table 6": {
            "Baseline", "Cyclical, (0.6, 0.4)", "Cyclical (zero-loss)", "Cyclical (zero-representation)",
        },
        "Table 7": {"Baseline, clips", "Cyclical, clips", "Cyclical (zero-representation), clips"},
        "Table 8": {
            "perfect detector, Baseline", "perfect detector, Cyclical",
            "perfect detector, Cyclical (zero-representation)",
        },
        "Table 9": {"Cyclical, (0.6, 0.4)", "Cyclical (MLP Localizer)"},
        "Table 10": {
            "Baseline", "Cyclical, (0.8, 0.2)", "Cyclical, (0.6, 0.4)", "Cyclical, (0.5, 0.5)",
            "Cyclical, (0.4, 0.6)", "Cyclical, (0.2, 0.8)",
        },
        "Table 11": {
            f"{detector} detector, {row}"
            for detector in ("perfect", "grounding-biased")
            for row in ("Baseline, supervised", "Baseline", "Cyclical")
        },
        "Table 12": {
            "GVD (w/o SelfAttn), clips", "GVD, supervised, clips", "Baseline, supervised, clips", "Baseline, clips",
            "Cyclical, clips",
        },
        "Table 13": {"Baseline", "Cyclical, (0.6, 0.4)"},
        "Table 14": {"Baseline, clips", "Cyclical, clips"},
    },
    "POS-SCAN": {
        "Table 1": {"SCAN", "POS-SCAN", "No supervision, XE", "GT, XE", "POS-SCAN, XE"},
        "Table 2": {
            f"{supervision}, {training}"
            for supervision in ("No supervision", "GT", "SCAN", "POS-SCAN")
            for training in ("XE", "CIDEr", "CIDEr + SCAN", "CIDEr + POS-SCAN")
        },
        "Table 3": {"Ours, bottom-up features", "Ours, GVD features"},
        "Table 4": {
            "XE Pre-Train", "+SCST(CIDEr)", "XE Pre-Train+POS-SCAN", "POS-SCAN, +SCST(CIDEr)", "POS-SCAN, +SCST(SCAN)",
        },
        "Figure 3": {"lambda_1 = 0.05", "lambda_1 = 0.2", "lambda_1 = 0.5"},
    },
    "Distributed Attention": {
        "Table 1": {"Ours, K = 4"},
        "Table 2": {"K = 2", "K = 3", "Ours, K = 4", "K = 5"},
        "Table 3": {f"K = {branches}, no elimination" for branches in (2, 3, 4, 5)},
        "Table 4": {"Baseline, K = 1", "Ours, K = 4"},
        "Section 4.4": {f"multi-head attention, {heads}" for heads in (2, 3, 4, 5, 6)},
        "Section 4.6": {"Ours, clips"},
    },
}  # fmt: skip
OTHER_SYSTEMS = {
    # numbers that the tables quote and that no method of ours makes, and a study with people
    "Cyclical": {"ATT-FCN", "NBT", "Masked Transformer", "Bi-LSTM+TempoAttn", "Table 5: Human evaluation"},
    "POS-SCAN": {"SR-PL", "Gu et al.", "NBT"},
    "Distributed Attention": {"Prophet"},
}
PAPERS = {"Cyclical": "1-cyclical", "POS-SCAN": "2-pos-scan", "Distributed Attention": "3-distributed-attention"}
FILES = {path.stem: read_recipe(path) for _, path in shipped_recipes() if path.parent.name == "captioning"}
ROWS = [(file, row) for file in FILES.values() for row in [None, *file.rows]]


def places(text: str) -> set[str]:
    """``Tables 1, 6`` names Table 1 and Table 6."""
    kind = re.match(r"(Table|Figure|Section)s? ", text)
    return {f"{kind[1]} {number}" for number in re.findall(r"\d+(?:\.\d+)?", text)} if kind else set()


@cache
def listed() -> dict[tuple[str, str], set[str]]:
    """(paper, table) -> rows, from what the recipes say of themselves."""
    found: dict[tuple[str, str], set[str]] = {}
    scan, _ = find_recipe("grounding/scan")
    for file, row in [*ROWS, (scan, None), (scan, "scan")]:
        about = file.about if row is None else file.about_row(row)
        for place in places(about.table):
            found.setdefault((about.paper.partition(" (")[0], place), set()).add(about.row)
    return found


@pytest.mark.parametrize(("paper", "place"), [(paper, place) for paper, some in TABLES.items() for place in some])
def test_every_row_of_the_tables_is_a_recipe(paper: str, place: str) -> None:
    missing = TABLES[paper][place] - listed().get((paper, place), set())
    assert not missing, f"{paper}, {place}: no recipe for {sorted(missing)}"


@pytest.mark.parametrize("paper", PAPERS)
def test_no_table_of_the_papers_is_forgotten(paper: str, shared: Path) -> None:
    text = (shared / "papers" / f"{PAPERS[paper]}.txt").read_text(encoding="utf-8")
    captions = {f"Table {number}" for number in re.findall(r"^Table (\d+)[:.]", text, re.MULTILINE)}
    elsewhere = {name.partition(":")[0] for name in OTHER_SYSTEMS[paper] if name.startswith("Table")}
    assert captions - elsewhere == {place for place in TABLES[paper] if place.startswith("Table")}
    for name in OTHER_SYSTEMS[paper]:
        assert name.partition(": ")[2] or name in text, f"{name} is not in the paper"


def test_no_two_recipes_claim_the_same_row() -> None:
    claimed: dict[tuple[str, str, str], str] = {}
    for file, row in ROWS:
        about = file.about if row is None else file.about_row(row)
        key = (about.paper, about.table, about.row)
        name = f"{file.path.stem}:{row}"
        assert claimed.setdefault(key, name) == name, f"{name} and {claimed[key]} both say {key}"


@pytest.fixture(scope="module")
def teachers(small_data: LoadData, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Untrained matchers under the names that recipes give their teachers."""
    home = tmp_path_factory.mktemp("teachers") / "runs"
    for name in ("scan", "pos-scan", "scan-gvd", "pos-scan-gvd", "scan-coco", "pos-scan-coco", "grounder-lite"):
        row = "grounding/scan:scan" if name.startswith("scan") else "grounding/scan"
        file, which = find_recipe(row)
        recipe = file.resolve(["model.width=16", "model.word_width=8"], row=which)
        data = small_data()
        model, config = build_model(recipe, data)
        (home / name).mkdir(parents=True)
        save_model(home / name, model, data.vocabulary, config)
    return home


@pytest.mark.recipe
@pytest.mark.parametrize("name", FILES)
def test_every_row_builds_and_takes_a_step(
    name: str, small_data: LoadData, teachers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEIXIS_HOME", str(teachers.parent))
    file = FILES[name]
    tiny = ["model.width=16", "precision=float32", "model.decoder.word_width=0"]
    tiny += ["model.region_width=0", "model.attention.width=0"]
    for row in [None, *file.rows]:
        recipe = file.resolve(tiny, row=row)
        data = small_data(recipe.data.supervision, recipe.data.classes)
        torch.manual_seed(1)
        model, _ = build_model(recipe, data)
        batch = data.train.batch(range(3), epoch=0)
        for number in recipe.planned:
            plan = recipe.stages[number]
            for attribute, value in plan.set.items():
                setattr(model, attribute, value)
            stage = build_stage(plan, model, data, torch.Generator().manual_seed(1)).train()
            losses = stage(batch, Moment(0, 0, 0, 0.0))
            losses["loss"].backward()
            where = f"{name}:{row}, stage {plan.name}"
            assert all(torch.isfinite(value) for value in losses.values()), f"{where}: {losses}"
            moved = [weight for weight in stage.parameters() if weight.grad is not None and weight.grad.any()]
            assert moved, f"{where}: nothing learns"
            model.zero_grad()
        for size in file.sizes:
            file.resolve([f"size={size}"], row=row)
