from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from deixis.grounding.label_prior import LabelPriorConfig
from deixis.grounding.reir.model import Reir, ReirConfig
from deixis.registry import build
from deixis.text.relations import RelationVocabulary
from deixis.training.recipe_files import read_recipe, recipe_path

FILE = read_recipe(recipe_path("grounding/reir"))
ROWS = [None, *FILE.rows]


@pytest.mark.parametrize("size", ["paper", "cpu"])
@pytest.mark.parametrize("row", ROWS)
def test_every_row_builds_its_model_and_objectives(cases: Any, row: str | None, size: str) -> None:
    recipe = FILE.resolve([f"size={size}", "model.width=4", "model.hidden=4", "model.word_width=3"], row=row)
    known = {"sizes": cases.sizes, "vocabulary": cases.vocabulary}
    model = build("model", recipe.model.kind, recipe.model.options, "model", **known)
    assert isinstance(model, Reir)
    known |= {"model": model, "data": SimpleNamespace(relations=RelationVocabulary([("on", 300)]))}
    for objective in recipe.stages[0].objectives:
        build("objective", objective.kind, objective.options, "stages", **known)
    names = {objective.kind for objective in recipe.stages[0].objectives}
    assert ("self_taught" in names) == (model.config.regression != "none")  # offsets nobody teaches would stay random


def test_rows_are_those_of_the_paper() -> None:
    def config(row: str | None) -> dict[str, Any]:
        return dict(FILE.resolve(row=row).model.options)

    full = config(None)
    assert (full["keep"], full["start"], full["regression"], full["graph"]) == (5, 7500, "phrase", "attention")
    assert config("tsd")["graph"] == config("tsd")["regression"] == "none"
    assert config("str-visual")["regression"] == "visual"
    assert config("uniform")["graph"] == "uniform"
    assert [config(row)["keep"] for row in ("k3", "k10")] == [3, 10]
    weights = {objective.kind: objective.weight for objective in FILE.resolve().stages[0].objectives}
    assert weights == {
        "reconstruction": 1.0,
        "self_taught": 0.1,
        "relation_classification": 1.0,
        "phrase_ranking": 1.0,
    }  # (lambda1, lambda2, lambda3) of equation 12 are (.1, 1, 1)
    assert ReirConfig(prior=LabelPriorConfig()).keep == 5
