"""A model made as its configuration says, and filled from its folder."""

from __future__ import annotations

from pathlib import Path

from deixis.data.sizes import InputSizes
from deixis.errors import BadFileError
from deixis.interfaces import Model
from deixis.models.checkpoint import VOCABULARY, WEIGHTS, ModelConfig, fill, load_config, load_weights
from deixis.reading.tensors import check_sizes, tensor_shapes
from deixis.registry import build
from deixis.text.vocabulary import Vocabulary


def make_model(config: ModelConfig, vocabulary: Vocabulary, detector_classes: tuple[str, ...] = ()) -> Model:
    """Return a new model for a vocabulary; ``detector_classes`` are those its regions bring along."""
    try:
        sizes = InputSizes(**config.sizes)
    except TypeError as error:
        raise BadFileError(f"the model's sizes do not fit this version: {error}") from error
    model: Model = build(
        "model",
        config.model.kind,
        config.model.options,
        "model",
        sizes=sizes,
        vocabulary=vocabulary,
        classes=config.classes,
        detector_classes=detector_classes,
    )
    return model


def load_model(folder: Path) -> tuple[Model, Vocabulary, ModelConfig]:
    """Return the model of a folder, ready to answer."""
    config = load_config(folder)
    check_sizes({"model": config.model.options, **config.sizes}, tensor_shapes(folder / WEIGHTS), str(folder))
    weights = load_weights(folder, config)
    vocabulary = Vocabulary.load(folder / VOCABULARY)
    if config.sizes.get("words") != len(vocabulary):
        raise BadFileError(f"{folder} was made for {config.sizes.get('words')} words, not {len(vocabulary)}: damaged")
    try:
        model = make_model(config, vocabulary)
    except (RuntimeError, ArithmeticError, TypeError, AssertionError, MemoryError) as error:
        reason = " ".join(str(error).split())[:300]
        raise BadFileError(f"no model can be built from the recipe in {folder}: {reason}") from error
    fill(model, weights, folder)
    return model.eval(), vocabulary, config
