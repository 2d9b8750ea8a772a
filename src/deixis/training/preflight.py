"""What can be wrong between a recipe and its files, said before anything is read or begun, with the key to change.

What is wrong with a recipe by itself ``check.py`` says. A store without what the model needs, a split that is not there
or a teacher of other regions would otherwise show only after minutes of reading, and without a word on which of the
recipe's two hundred keys it hangs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from deixis.component import Component
from deixis.data.locations import find
from deixis.data.no_regions import NAME as NO_STORE
from deixis.data.region_cache import AUTO
from deixis.errors import BadFileError, BadRecipeError, DeixisError
from deixis.grounding.label_prior import LabelPriorConfig
from deixis.models.checkpoint import load_config
from deixis.models.names import find_model
from deixis.regions.store.reader import RegionStore
from deixis.training.dataset import dataset_of
from deixis.training.recipe import ObjectiveRecipe, Recipe, Source


def check_files(recipe: Recipe) -> None:
    """Refuse a recipe whose files do not fit it; nothing is read but lists of splits and the heads of stores."""
    for place, key, source in _sources(recipe):
        _check_splits(place, key, source)
    for key, name in (("data.classes", recipe.data.classes), ("data.vocabulary", recipe.data.vocabulary)):
        if name is not None:
            _find(name, "data", key)
    store = _store(recipe)
    if store is not None:
        _check_store(recipe, store)
        _check_other_stores(recipe, store)
        _check_teachers(recipe, store)


def _sources(recipe: Recipe) -> Iterator[tuple[str, str, Source]]:
    """Yield every source with the keys that name its dataset and its split."""
    data = recipe.data
    yield "data.dataset", "data.train", Source(data.dataset, data.store, data.train, data.reader)
    for at, source in enumerate(data.more):
        yield f"data.more.{at}.dataset", f"data.more.{at}.split", source
    if data.validation_from is not None:
        yield "data.validation_from.dataset", "data.validation_from.split", data.validation_from
    elif data.validation is not None:
        yield "data.dataset", "data.validation", Source(data.dataset, data.store, data.validation, data.reader)


def _check_splits(place: str, key: str, source: Source) -> None:
    dataset = dataset_of(source, place)
    for split in source.split.split("+"):
        try:
            dataset.find_split(split)
        except DeixisError as error:
            raise BadRecipeError(f"{key} is {source.split!r}, but {error}: set {key} to one of these") from error


def _store(recipe: Recipe) -> RegionStore | None:
    """Return the store of the training images, where the recipe names one."""
    name = recipe.data.store
    return None if name in (AUTO, NO_STORE) else _opened(name, "data.store")


def _opened(name: str, key: str) -> RegionStore:
    return RegionStore.open(_find(name, "stores", key))


def _find(name: str, what: Literal["data", "stores"], key: str) -> Path:
    try:
        return find(name, what)
    except BadFileError as error:
        raise BadFileError(f"{error}; name yours: {key}=YOUR_{'STORE' if what == 'stores' else 'FILE'}") from error


def _check_store(recipe: Recipe, store: RegionStore) -> None:
    data, width = recipe.data, store.width("features")
    if data.feature_width is not None and width != data.feature_width:
        raise BadRecipeError(
            f"the regions of {store.path} are described by {width} numbers, this recipe is for {data.feature_width}: "
            "name other regions in data.store, or set data.feature_width to null to train on these"
        )
    for key, value, needed, without in _needs(recipe.model):
        if needed not in store.fields:
            raise BadRecipeError(
                f"model.{key}: {value} needs {needed}, which {store.path} does not hold ({_way(needed)}); or set "
                f"model.{key} to {without}{' and data.maps to false' if needed == 'feature_map' else ''}"
            )
    if (
        recipe.model.kind == "captioner"
        and _part(recipe.model, "encoder").get("map") == "feature_map"
        and not data.maps
    ):
        raise BadRecipeError("model.encoder.map: feature_map needs the maps of the regions: set data.maps to true")


def _check_other_stores(recipe: Recipe, store: RegionStore) -> None:
    """Refuse further sources whose regions another extractor found: the model would be asked what it never saw."""
    named = [(f"data.more.{at}.store", source.store) for at, source in enumerate(recipe.data.more)]
    if recipe.data.validation_from is not None:
        named.append(("data.validation_from.store", recipe.data.validation_from.store))
    for key, name in named:
        if name in (AUTO, NO_STORE):
            continue
        other = _opened(name, key)
        if other.fingerprint != store.fingerprint:
            raise BadRecipeError(
                f"{key} is {name!r}, which holds regions of {other.fingerprint}, but {store.path} holds regions of "
                f"{store.fingerprint}: name regions of one kind in {key} and data.store (`--name` of regions import)"
            )


def _needs(model: Component) -> Iterator[tuple[str, str, str, str]]:
    """Yield the key of a model's option, its value, the field of the regions that it needs, and what does without."""
    if model.kind == "reir":
        kind = str(_part(model, "prior").get("kind", LabelPriorConfig().kind))
        if kind != "none":
            yield "prior.kind", kind, "class_probs", "none"
    elif model.kind == "maf" and model.options.get("labels", True):
        yield "labels", "true", "class_probs", "false"
    elif model.kind == "captioner":
        encoder = _part(model, "encoder")
        similarity = str(encoder.get("similarity", "none"))
        for part, field in (("classes", "class_probs"), ("words", "word_probs")):
            if part in similarity:
                yield "encoder.similarity", similarity, field, "none"
        if encoder.get("feature") == "class":
            yield "encoder.feature", "class", "class_probs", "given"
        if encoder.get("map") == "feature_map":
            yield "encoder.map", "feature_map", "feature_map", "none"


def _part(model: Component, key: str) -> Mapping[str, Any]:
    part = model.options.get(key)
    return part if isinstance(part, Mapping) else {}


def _way(needed: str) -> str:
    """Say how regions get what they lack."""
    ways = {
        "class_probs": "import it with --class-names, from files that hold detector classes",
        "feature_map": "import it with --maps, a folder of conv maps",
        "word_probs": "extract it with lite",
    }
    return ways[needed]


def _check_teachers(recipe: Recipe, store: RegionStore) -> None:
    started = recipe.start_from is not None and not recipe.new_regions
    named = [("start_from", recipe.start_from)] if started else []
    for where, objective in _objectives(recipe):
        teacher = objective.options.get("teacher")
        named += [(f"{where}.teacher", teacher)] if isinstance(teacher, str) and teacher else []
        judges = objective.options.get("grounders")
        named += [(f"{where}.grounders", name) for name in judges] if isinstance(judges, Mapping) else []
    captioner = recipe.model.kind == "captioner"
    for where, name in named:
        part = "captioner" if where == "start_from" and captioner else "grounder"
        try:
            fingerprint = load_config(find_model(str(name), part=part)).fingerprint  # type: ignore[arg-type]
        except DeixisError as error:
            raise BadRecipeError(f"{where} is {name!r}: {error}") from error
        if fingerprint != store.fingerprint:
            raise BadRecipeError(
                f"{where} is {name!r}, which looks at regions of {fingerprint}, but {store.path} holds regions of "
                f"{store.fingerprint}: name a model trained on these in {where}, or other regions in data.store"
            )


def _objectives(recipe: Recipe) -> Iterator[tuple[str, ObjectiveRecipe]]:
    for number in recipe.planned:
        stage = recipe.stages[number]
        yield from ((f"stages.{stage.name}.objectives.{one.name}", one) for one in stage.objectives)
