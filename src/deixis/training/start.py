"""Starting a run from the weights of another: ``start_from`` in a recipe.

Methods that only change how a captioner looks are compared at equal budget by going on from one trained baseline. The
words of the other model are taken over, so that the same number means the same word. What a model cannot take from the
other as it stands, its own ``adopt`` method turns into its own form; objectives always start with fresh weights.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from deixis.errors import BadRecipeError
from deixis.training.checkpoint import VOCABULARY, ModelConfig, fill, load_config, load_weights
from deixis.training.dataset import TrainingData
from deixis.training.models import find_model
from deixis.training.recipe import DataRecipe, Recipe


def starting_words(recipe: Recipe) -> DataRecipe:
    """Return the recipe's data with the vocabulary of the model it starts from, unless it names one itself."""
    if recipe.start_from is None or recipe.data.vocabulary is not None:
        return recipe.data
    return replace(recipe.data, vocabulary=str(find_model(recipe.start_from) / VOCABULARY))


def start_from(model: nn.Module, config: ModelConfig, data: TrainingData) -> None:
    """Fill a new model with the weights its recipe starts from, or say in one line why they do not fit."""
    recipe = config.recipe
    if recipe.start_from is None:
        return
    folder = find_model(recipe.start_from)
    other = load_config(folder)
    other.require(config.fingerprint, data.store.path)
    if other.recipe.model.kind != recipe.model.kind:
        raise BadRecipeError(
            f"start_from {recipe.start_from} is a {other.recipe.model.kind}, this recipe trains a {recipe.model.kind}"
        )
    if other.sizes.get("words") != config.sizes["words"] or not _same_words(folder / VOCABULARY, data):
        raise BadRecipeError(
            f"start_from {recipe.start_from} knows other words than {recipe.data.vocabulary}: leave data.vocabulary out"
        )
    weights: dict[str, Tensor] = load_weights(folder, other)
    adopt = getattr(model, "adopt", None)
    fill(model, weights if adopt is None else adopt(weights), folder)


def _same_words(path: object, data: TrainingData) -> bool:
    from deixis.text.vocabulary import Vocabulary

    return Vocabulary.load(str(path)).words == data.vocabulary.words
