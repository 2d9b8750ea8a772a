"""The runner of tables: rows exist as recipes, results come back as written, differences are those of photos."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.flickr8k import __main__ as runner
from benchmarks.flickr8k import render, results, work
from benchmarks.flickr8k.results import Result
from benchmarks.flickr8k.tables import ROWS, TABLES, Row, Table
from benchmarks.flickr8k.work import recipe_of
from deixis.errors import BadFileError, DeixisError
from deixis.training.recipe import Source
from deixis.training.recipe_files import find_recipe
from deixis.training.train import train

PHOTOS = 40
A = Row("a", "grounding/scan:scan", "first", paper={"any-box R@1": 20.0})
B = Row("b", "grounding/scan", "second", against="a", paper={"any-box R@1": 31.5})
C = Row("c", "grounding/scan:code", "third", against="a")
TABLE = Table("t", "A table", "phrases", (A, B, C), "a paper", ("any-box R@1",), ("any-box R@1",), page="page.md")


def result(row: str, seed: int, hits: list[int]) -> Result:
    samples = {variant: {"any-box R@1": hits} for variant in ("bare", "prior")}
    recipe = next((known.recipe for known in (A, B, C) if known.name == row), "r")
    return Result(row, seed, recipe, (), "val", "p", "lite", 10, 1.0, [10] * len(hits), samples)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = random.Random(0)
    for seed in (1, 2, 3):
        base = [rng.randint(0, 4) for _ in range(PHOTOS)]
        results.save(result("a", seed, base), tmp_path)
        results.save(result("b", seed, [hits + 2 for hits in base]), tmp_path)  # every photo gains two of its ten
    return tmp_path


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_row_is_a_recipe_and_is_compared_with_a_row_of_its_table(table: Table) -> None:
    names = [row.name for row in table.rows]
    assert len(set(names)) == len(names)
    for row in table.rows:
        assert row.against is None or row.against in names
        assert row.of is None or any(other.name == row.of for known in TABLES.values() for other in known.rows)
        recipe = recipe_of(row, 7)
        assert recipe.seed == 7
        assert recipe.validation.kind == table.kind


@pytest.mark.parametrize(
    "name", ["scan", "infoground", "infoground-coco", "reir", "scan-whole", "infoground-whole", "reir-whole"]
)
def test_rows_of_a_table_have_the_same_budget_and_data(name: str) -> None:
    recipes = [recipe_of(row, 1) for row in TABLES[name].rows]
    assert len({(r.stages[-1].epochs, r.stages[-1].batch, r.stages[-1].optimizer, r.precision) for r in recipes}) == 1
    assert len({repr(r.data) for r in recipes}) == 1


def test_a_result_comes_back_as_it_was(tmp_path: Path) -> None:
    one = result("a", 1, [3, 0, 5])
    results.save(one, tmp_path)
    back = results.load("a", 1, tmp_path)
    assert back is not None
    assert back.value("bare", "any-box R@1") == pytest.approx(8 / 30)
    assert back.value("bare", "unknown") is None
    assert results.load("a", 2, tmp_path) is None
    (tmp_path / "a-s2.json").write_text('{"row": 1}')
    with pytest.raises(BadFileError, match=r"a-s2\.json"):
        results.load("a", 2, tmp_path)


def test_a_gain_of_every_photo_has_an_interval_of_no_width(folder: Path) -> None:
    a, b = render.found(A, folder), render.found(B, folder)
    gap = render.difference(b, a, "bare", "any-box R@1")
    assert gap is not None
    assert (gap.value, gap.low, gap.high) == pytest.approx((0.2, 0.2, 0.2))
    assert render.difference(b[:1], a[1:], "bare", "any-box R@1") is None  # no seed in common


def test_the_table_says_what_was_not_run_and_what_the_paper_has(folder: Path) -> None:
    text = render.markdown(TABLE, folder)
    means = [results.load("a", seed, folder).value("bare", "any-box R@1") for seed in (1, 2, 3)]  # type: ignore[union-attr]
    assert f"{100 * sum(means) / 3:.1f} ±" in text  # type: ignore[arg-type]
    assert "| third |" not in text
    assert text.endswith("Not run: third.")
    assert f"**+20.0 [+20.0, +20.0] ({0.2 / (sum(means) / 3):+.0%})**" in text  # type: ignore[arg-type]
    assert "R@1 +11.50 (+57%)" in text  # 31.5 / 20 - 1, rounded to even
    own = replace(TABLE, rows=(A, replace(B, paper_base={"any-box R@1": 30.0}), C))
    assert "R@1 +1.50 (+5%)" in render.markdown(own, folder)  # the paper's own baseline is not our row's


def test_results_over_other_photos_are_not_compared(folder: Path) -> None:
    results.save(replace(result("c", 1, [1]), photos="others"), folder)
    with pytest.raises(DeixisError, match="different photos"):
        render.markdown(TABLE, folder)


def test_the_table_is_written_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table t -->\nold\n<!-- end t -->\nafter\n")
    render.write(TABLE, tmp_path)
    text = page.read_text()
    assert text.startswith("before\n<!-- table t -->\n`python -m benchmarks.flickr8k --table t`")
    assert text.endswith("<!-- end t -->\nafter\n")
    assert "old" not in text
    page.write_text("nothing")
    with pytest.raises(DeixisError, match="no place"):
        render.write(TABLE, tmp_path)


def test_the_first_seed_of_every_row_comes_first_and_what_is_done_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    results.save(result("b", 1, [1]), tmp_path)
    rare = replace(C, seeds=(1,))
    todo = runner.missing([replace(TABLE, rows=(rare, A, B))], None, None)
    assert [(row.name, seed) for _, row, seed in todo] == [("a", 1), ("a", 2), ("b", 2), ("a", 3), ("b", 3), ("c", 1)]


def test_test_has_results_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    on_test = replace(TABLE, split="test")
    results.save(result("a", 1, [9]), results.folder_of("val"))
    assert not runner.has_result(on_test, A, 1)
    assert "Not run: first" in render.markdown(on_test)
    results.save(replace(result("a", 1, [1]), split="test"), results.folder_of("test"))
    assert runner.has_result(on_test, A, 1)
    text = render.markdown(on_test)
    assert "--table t`, test, mean" in text
    assert "| 10.0 |" in text
    assert "90.0" not in text


def test_a_result_of_another_form_of_its_row_does_not_count(tmp_path: Path) -> None:
    row = replace(A, overrides=("start_from=base-s{seed}", "stages.0.epochs=9"))
    for overrides, counts in (
        (("start_from=base-s{seed}", "stages.0.epochs=9"), True),
        (("start_from=base-s1", "stages.0.epochs=9"), True),  # as earlier results have it
        (("start_from=base-s2", "stages.0.epochs=9"), False),
        (("start_from=base-s{seed}",), False),
    ):
        results.save(replace(result("a", 1, [1]), overrides=overrides), tmp_path)
        assert (results.current(row, 1, tmp_path) is not None) == counts
    assert results.current(replace(row, recipe="other"), 1, tmp_path) is None


@pytest.mark.parametrize("name", ["infoground", "reir", "scan"])
def test_controls_have_the_same_rows_on_whole_things_only(name: str) -> None:
    rows = {row.name: row for row in TABLES[name].rows}
    for control in TABLES[f"{name}-whole"].rows:
        row = rows[control.name.removesuffix("-whole")]
        here, there = recipe_of(control, 1), recipe_of(row, 1)
        assert here.differences(there) == ["data.store"]
        assert here.data.store == f"{there.data.store}-whole"


def test_claims_of_the_grounding_papers_have_three_seeds() -> None:
    for name in ("infoground", "infoground-coco", "reir", "infoground-whole", "reir-whole"):
        assert all(row.seeds == (1, 2, 3) for row in TABLES[name].rows if row.paper)


def test_other_photos_have_a_store_named_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Source] = []

    def read(source: Source, tagged: bool) -> object:
        asked.append(source)
        raise DeixisError("enough")

    monkeypatch.setattr(work, "read_source", read)
    worker = work.Worker(None, Console())
    for row in ("reir-full", "infoground-none"):
        with pytest.raises(DeixisError, match="enough"):
            worker.photos(recipe_of(ROWS[row], 1), "val", "train2017/refcoco")
    assert [(source.dataset, source.store) for source in asked] == [
        ("train2017/refcoco", "refcoco-dense"),
        ("train2017/refcoco", "refcoco"),
    ]
    assert results.folder_of("val", "train2017/refcoco") == results.FOLDER / "refcoco"


def test_a_run_without_validation_ends_with_its_last_epoch(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("".join(f"{at}\ta dog runs here\n" for at in range(6)))
    options = ["size=cpu", f"data.dataset={tmp_path}", "data.min_count=1", "data.parse=false", "model.width=8"]
    options += ["model.heads=2", "model.layers=1", "stages.guess.batch=6", "stages.guess.epochs=2", "save_every=1"]
    file, _ = find_recipe("text/masked")
    recipe = file.resolve(options)
    assert not work.finished(tmp_path / "run")
    train(replace(recipe, stages=(replace(recipe.stages[0], epochs=1),)), tmp_path / "short", tensorboard=False)
    assert work.finished(tmp_path / "short")
    (tmp_path / "short").rename(tmp_path / "run")
    settings = (tmp_path / "run" / "recipe.yaml").read_text()
    (tmp_path / "run" / "recipe.yaml").write_text(settings.replace("epochs: 1", "epochs: 2"))
    assert not work.finished(tmp_path / "run")


def test_an_ensemble_waits_for_all_of_its_runs_and_is_named_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS["ensemble-scan"]
    done = {"infoground-none-s2"}
    monkeypatch.setattr(work, "finished", lambda path: path.name in done)
    assert not work.ready(row, 2)
    done.add("scan-s2")
    assert work.ready(row, 2)
    assert not work.ready(row, 1)
    assert [Path(name).name for name in work.model_name(row, 2).split("+")] == [
        "infoground-none-s2",
        "scan-s2",
    ]


def test_a_dry_run_prints_the_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(results, "FOLDER", Path("/nonexistent"))
    monkeypatch.setattr(sys, "argv", ["flickr8k", "--table", "reir", "--rows", "reir-tsd", "--seeds", "2", "--dry-run"])
    assert runner.main() == 0
    assert capsys.readouterr().out == (
        "reir-tsd-s2: deixis train grounding/reir:tsd size=cpu stages.match.epochs=20 model.start=1473 seed=2\n"
    )


def test_committed_results_are_small_and_over_the_same_photos() -> None:
    assert sum(file.stat().st_size for file in results.FOLDER.rglob("*.json")) < 8 * 2**20
    for split in ("val", "test"):
        found = [json.loads(file.read_text()) for file in sorted(results.folder_of(split).glob("*.json"))]
        assert {data["split"] for data in found} <= {split}
        assert len({data["photos"] for data in found}) <= 1
