"""Starting a run from the weights of another: ``start_from`` in a recipe.

Methods that only change how a captioner looks are compared at equal budget by going on from one trained baseline. The
words of the other model are taken over, so that the same number means the same word; with ``data.new_words`` those the
training captions use beside them are added. What a model cannot take from the other as it stands, its own ``adopt``
method turns into its own form; objectives always start with fresh weights. With ``new_regions`` the other model may
have looked at regions of another extractor: what reads them begins afresh, what speaks goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from deixis.errors import BadRecipeError
from deixis.interfaces import Model
from deixis.models.checkpoint import VOCABULARY, fill, load_config, load_weights
from deixis.models.names import Part, find_model
from deixis.regions.extraction.tasks import Settings
from deixis.registry import find_class
from deixis.text.vocabulary import SPECIAL_WORDS, Vocabulary
from deixis.training.dataset import TrainingData
from deixis.training.recipe import DataRecipe, Recipe


def starting_words(recipe: Recipe) -> DataRecipe:
    """Return the recipe's data with the vocabulary of the model it starts from, unless it names one itself."""
    if recipe.start_from is None or recipe.data.vocabulary is not None:
        return recipe.data
    return replace(recipe.data, vocabulary=str(find_model(recipe.start_from, part=part_of(recipe)) / VOCABULARY))


def starting_regions(recipe: Recipe) -> Settings:
    """Return how regions are found where a store is not named: as for the model the recipe starts from.

    But computed as answers are, whatever it learned from was computed in: bf16 is very slow on many processors.
    """
    if recipe.start_from is None:
        return Settings()
    known = load_config(find_model(recipe.start_from, part=part_of(recipe))).extractor
    settings = Settings(**{name: value for name, value in known.items() if name in Settings.__dataclass_fields__})
    return replace(settings, precision=Settings().precision)


def part_of(recipe: Recipe) -> Part:
    """Return which of the two models of a bundle, such as ``lite``, a recipe starts from."""
    part: Part = find_class("model", recipe.model.kind, "model").part
    return part


def start_from(model: Model, recipe: Recipe, data: TrainingData) -> None:
    """Fill a new model with the weights its recipe starts from, or say in one line why they do not fit."""
    if recipe.start_from is None:
        return
    folder = find_model(recipe.start_from, part=part_of(recipe))
    other = load_config(folder)
    if not recipe.new_regions:
        other.require(data.store.fingerprint, data.store.path)
    if other.model.kind != recipe.model.kind:
        raise BadRecipeError(
            f"start_from {recipe.start_from} is a {other.model.kind}, this recipe trains a {recipe.model.kind}"
        )
    known = Vocabulary.load(folder / VOCABULARY).words
    if data.vocabulary.words[: len(known)] != known or (data.vocabulary.words != known and not recipe.data.new_words):
        raise BadRecipeError(
            f"start_from {recipe.start_from} knows other words than {recipe.data.vocabulary}: leave data.vocabulary out"
        )
    weights = model.adopt(load_weights(folder, other))
    if recipe.new_regions:
        afresh = {name: value for name, value in model.state_dict().items() if name.startswith(model.reads_regions)}
        if not afresh:
            raise BadRecipeError(
                f"new_regions: a {recipe.model.kind} has no layer that could begin afresh; leave it out"
            )
        weights |= afresh
    fill(model, with_new_words(weights, model.state_dict(), len(known), len(data.vocabulary)), folder)


def with_new_words(
    weights: Mapping[str, Tensor], own: Mapping[str, Tensor], known: int, words: int
) -> dict[str, Tensor]:
    """Return weights whose tables of words have rows for the new words, each the mean of the known words' rows.

    Then a new word is at first no likelier than the average of all words, and what the model says does not change.

    Args:
        weights: Of the model that knows ``known`` words.
        own: The new model's, whose shapes tell which of its weights are tables of words.
        known: How many words, special ones included, the old model has.
        words: How many the new one has.
    """
    grown = dict(weights)
    for name, value in weights.items():
        target = own.get(name)
        if words > known and target is not None and value.shape == (known, *target.shape[1:]) and len(target) == words:
            mean = value[len(SPECIAL_WORDS) :].mean(0, keepdim=True)
            grown[name] = torch.cat([value, mean.expand(words - known, *value.shape[1:])])
    return grown
