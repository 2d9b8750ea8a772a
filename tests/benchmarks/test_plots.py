"""Plots: drawn from result files alone, the same bytes each time, and only what the results hold."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from benchmarks.drawing import DARK, INK, picture
from benchmarks.flickr8k import __main__ as runner
from benchmarks.flickr8k import plots, results, work
from benchmarks.flickr8k.facts import AT_LEAST
from benchmarks.flickr8k.results import Result
from benchmarks.flickr8k.tables import ROWS, TABLES
from deixis.metrics.grounding.error_types import FIVE_TYPES


def recipe(row: str) -> tuple[str, tuple[str, ...]]:
    """Return recipe and overrides of a row as it is now: results of another form do not count."""
    return (ROWS[row].recipe, ROWS[row].overrides) if row in ROWS else ("r", ())


def captions(row: str, seed: int = 1, f1: float = 0.1) -> Result:
    bins = [{"at least": low, "classes": 3, "words": 9, "F1_all": f1 / 2, "F1_loc": f1} for low in AT_LEAST]
    facts = {"by frequency": bins, "errors": dict.fromkeys(FIVE_TYPES, 0.2)}
    samples = {"bare": {name: [1, 0] for name in ("F1_all", "CIDEr")}}
    return Result(row, seed, *recipe(row), "val", "p", "lite", 10, 1.0, [2, 2], samples, facts=facts)


def phrases(row: str, seed: int = 1) -> Result:
    curves = {"bare": [0.4] * 9, "prior": [0.6] * 9, "best region": [0.9] * 9}
    logged = [{"step": at, "validation": {"R@1": 0.1 * at, "pointing": 0.2 * at, "bound": at}} for at in (1, 2)]
    facts = {"IoU": curves, "validations": logged}
    return Result(row, seed, *recipe(row), "val", "p", "lite", 10, 1.0, [2], {}, facts=facts)


def words(path: Path) -> list[str]:
    """Return the texts of a picture."""
    return [node.text or "" for node in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_without_results_nothing_is_drawn(tmp_path: Path) -> None:
    assert set(plots.draw(tmp_path, tmp_path / "images").values()) == {False}
    assert not (tmp_path / "images").exists()


def test_results_of_before_the_plots_are_read_and_left_out(tmp_path: Path) -> None:
    results.save(replace(captions("cyclical"), facts={"BLEU-4": 0.2}), tmp_path)
    results.save(replace(phrases("scan"), facts={"validations": []}), tmp_path)
    assert not any(plots.draw(tmp_path, tmp_path / "images").values())


def test_every_plot_is_drawn_from_results_and_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("continued", "distilled-lite"):
        results.save(captions(name), tmp_path)
    for name in ("baseline-whole", "scan", "infoground-none", "infoground-linear"):
        results.save(phrases(name), tmp_path)
    first, second = tmp_path / "first", tmp_path / "second"
    assert plots.draw(tmp_path, first) == dict.fromkeys(plots.FIGURES, True)
    plots.draw(tmp_path, second)
    for name in plots.FIGURES:
        assert (first / name).read_bytes() == (second / name).read_bytes()
        assert "dc:date" not in (first / name).read_text()
    assert "continued cross entropy (control)" in words(first / "results-errors.svg")
    assert "whole image" in words(first / "results-iou.svg")
    assert {"linear", "1 hidden layer"} <= set(words(first / "results-bound.svg"))


def test_a_dot_is_the_mean_over_the_seeds_of_all_tables(tmp_path: Path) -> None:
    results.save(captions("cyclical", 1, 0.10), tmp_path)
    results.save(captions("cyclical", 2, 0.13), tmp_path)  # the second seed belongs to the headline table
    assert plots.draw_frequency(tmp_path / "plot.svg", tmp_path)
    shown = words(tmp_path / "plot.svg")
    assert shown.count("11.5") == len(AT_LEAST)
    assert "1,000 and more" in shown
    assert "30 to 99" in shown


def test_the_weight_of_distillation_is_that_of_the_recipe() -> None:
    assert plots.distillation_weight(ROWS["continued"]) == 0
    distilled = ROWS["distilled"]
    weight = plots.distillation_weight(distilled)
    assert weight > 0
    more = (*distilled.overrides, f"stages.point.objectives.distillation.weight={2 * weight}")
    assert plots.distillation_weight(replace(distilled, overrides=more)) == pytest.approx(2 * weight)
    assert plots.distillation_weight(ROWS["scst-cider"]) == 0  # rewarded alone: no stage of it distils


def test_points_of_the_sweep_have_a_plot_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, distilled = TABLES["captioning"], ROWS["distilled"]
    override = "stages.point.objectives.distillation.weight=0.7"
    rows = [row for row in table.rows if not row.name.startswith(plots.SWEEP)]
    extra = replace(distilled, name="lambda-0.7", title="one of many", overrides=(*distilled.overrides, override))
    monkeypatch.setitem(TABLES, "captioning", replace(table, rows=(*rows, extra)))
    results.save(replace(captions("lambda-0.7"), recipe=extra.recipe, overrides=extra.overrides), tmp_path)
    assert not plots.draw_sweep(tmp_path / "sweep.svg", tmp_path)  # one point is no sweep
    results.save(captions("continued"), tmp_path)
    assert plots.draw_sweep(tmp_path / "sweep.svg", tmp_path)
    assert {"0", "0.7"} <= set(words(tmp_path / "sweep.svg"))
    assert plots.draw_errors(tmp_path / "errors.svg", tmp_path)
    assert "one of many" not in words(tmp_path / "errors.svg")


def test_ink_and_paper_change_together_where_dark_is_preferred(tmp_path: Path) -> None:
    with picture(tmp_path / "a.svg", "A <title>", 2, 2) as figure:
        figure.text(0.5, 0.5, "word")
    text = (tmp_path / "a.svg").read_text()
    style = text.split("@media (prefers-color-scheme: dark)")[1].split("</style>")[0]
    for light, dark in DARK.items():
        assert f'[style*="fill: {light}"] {{ fill: {dark} !important }}' in style
    node = next(node for node in ElementTree.fromstring(text).iter() if node.text == "word")
    assert f"fill: {INK}" in node.attrib["style"]


def test_a_drawing_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), picture(tmp_path / "a.svg", "title", 2, 2):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_only_rows_whose_run_is_still_there_are_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    for name in ("baseline-whole", "scan", "pos-scan-over-all"):
        results.save(phrases(name), tmp_path)
    monkeypatch.setattr(work, "finished", lambda path: path.name == "scan-s1")
    again = runner.measured([TABLES["grounding"], TABLES["scan"]], None, None)
    assert sorted((row.name, seed) for _, row, seed in again) == [("baseline-whole", 1), ("scan", 1)]
