"""A recipe checked when it is read: that its parts exist, take their options and fit each other.

Nothing is built for it and no file is touched, so that a misspelt option costs a second, not the regions of a dataset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deixis.errors import BadRecipeError
from deixis.objectives.base import Need, Objective
from deixis.registry import OWN, find_class, is_outside, package_of, read_options
from deixis.training.recipe import DataRecipe, ObjectiveRecipe, Recipe

MODEL_KNOWS = ("sizes", "vocabulary", "classes", "detector_classes")
"""What a model is given beside its options."""
STAGE_KNOWS = ("model", "captioner", "vocabulary", "classes", "data", "sizes", "load_grounder", "grounder_digest")
"""What an objective is given beside its options."""
OWN_KEYS = ("kind", "name", "weight")
"""Keys of an objective that the stage reads."""


def check_recipe(recipe: Recipe) -> Recipe:
    """Return a recipe whose parts exist, take their options and fit each other; else raise one clear line."""
    model = find_class("model", recipe.model.kind, "model.kind")
    if is_outside(recipe.model.kind):
        OWN.add(package_of(recipe.model.kind))
    _check_options(model, recipe.model.options, "model", MODEL_KNOWS, ("kind",))
    find_class("validation", recipe.validation.kind, "validation.kind")
    for stage in recipe.stages:
        for objective in stage.objectives:
            _check_objective(objective, model, recipe, f"stages.{stage.name}.objectives.{objective.name}")
    return recipe


def _check_objective(objective: ObjectiveRecipe, model: type[Any], recipe: Recipe, where: str) -> None:
    if not objective.name.isidentifier():
        raise BadRecipeError(f"{where}: the name {objective.name!r} should be one word, such as 'mine': give a 'name'")
    found: type[Objective] = find_class("objective", objective.kind, where)
    _check_options(found, objective.options, where, STAGE_KNOWS, OWN_KEYS)
    if not issubclass(model, found.trains):
        raise BadRecipeError(
            f"{where} trains a {found.trains.__name__}, but the model of this recipe ({recipe.model.kind}) is a "
            f"{model.__name__}"
        )
    for need in sorted(found.needed(objective.options)):
        reason = _missing(need, recipe.data, told=recipe.start_from is not None)
        if reason:
            raise BadRecipeError(f"{where} would train nothing: {reason}")


def _missing(need: Need, data: DataRecipe, *, told: bool) -> str:
    """Return why the data cannot give what an objective needs, or "" where it may; ``told``: a model brings words."""
    if need == "tags" and not (data.parse or data.vocabulary or told):
        return "its words are chosen by their tags, and data.parse is false: set data.parse to true"
    if need == "boxes" and not data.supervision:
        return "it learns from human boxes, which data.supervision keeps from models: set data.supervision to true"
    if need == "classes" and not data.classes:
        return "it learns object classes: name a file with them in data.classes, one a line"
    return ""


def _check_options(
    target: Any, options: Mapping[str, Any], where: str, known: tuple[str, ...], also: tuple[str, ...]
) -> None:
    """Read the options as building would, with nothing in the place of what only a run knows."""
    read_options(target, options, where, dict.fromkeys(known), also)
