"""Recipes beyond the five papers: every row resolves at both sizes to stages whose objectives exist."""

from __future__ import annotations

import pytest

from deixis.grounding.base import WordGrounder
from deixis.registry import find_class
from deixis.training.recipe_files import find_recipe


@pytest.mark.parametrize("name", ["grounding/lite", "grounding/maf", "grounding/paraphrase"])
@pytest.mark.parametrize("size", ["paper", "cpu"])
def test_every_row_resolves(name: str, size: str) -> None:
    file, _ = find_recipe(name)
    for row in [None, *file.rows]:
        recipe = file.resolve([f"size={size}"], row=row)
        assert issubclass(find_class("model", recipe.model.kind, "test"), WordGrounder)
        assert not recipe.data.supervision
        for stage in recipe.stages:
            assert all(find_class("objective", objective.kind, "test") for objective in stage.objectives)


def test_what_ships_leaves_val_and_test_out() -> None:
    file, _ = find_recipe("grounding/lite")
    data = file.resolve(["size=cpu"], row="ship").data
    assert (data.train, data.validation) == ("train", "val")
    assert [(source.dataset, source.split) for source in data.more] == [("coco-train2017", "train")]


def test_paraphrases_are_the_only_difference_to_maf() -> None:
    plain, more = (find_recipe(f"grounding/{name}")[0].resolve(["size=cpu"]) for name in ("maf", "paraphrase"))
    assert [objective.kind for objective in more.stages[0].objectives] == ["phrase_contrast", "paraphrase_consistency"]
    changed = plain.differences(more)
    assert all(name.startswith(("about", "stages")) for name in changed)
