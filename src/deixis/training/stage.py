"""A stage: one model and its weighted objectives in one module, the only one that accelerate prepares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from deixis.captioning.model.config import InputSizes
from deixis.data.batch import Batch
from deixis.errors import BadFileError, BadRecipeError
from deixis.interfaces import Grounder
from deixis.models.checkpoint import VOCABULARY, WEIGHTS, ModelConfig, fill, load_config, load_weights, same_device
from deixis.models.registry import build
from deixis.models.strict import unknown_key
from deixis.objectives.base import Context
from deixis.reading.tensors import check_sizes, tensor_shapes
from deixis.regions.store.reader import RegionStore
from deixis.text.vocabulary import Vocabulary
from deixis.training.recipe import Recipe, StageRecipe

if TYPE_CHECKING:  # readers and PyAV, which answering does without
    from deixis.training.dataset import TrainingData


@dataclass(frozen=True, slots=True)
class Moment:
    """When a step happens."""

    step: int
    """Optimizer steps before this one, over all stages."""
    stage_step: int
    epoch: int
    """Full epochs before this one, in this stage."""
    through: float
    """Share of the epoch that is done."""


class Stage(nn.Module):
    """Calls every objective with one shared context and adds up their losses.

    All of model and objectives is inside, so in data-parallel training every gradient synchronises.
    """

    def __init__(
        self,
        model: nn.Module,
        objectives: Mapping[str, nn.Module],
        weights: Mapping[str, float],
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.model = model
        self.objectives = nn.ModuleDict(dict(objectives))
        self.weights = dict(weights)
        self.generator = generator

    def forward(self, batch: Batch, moment: Moment) -> dict[str, Tensor]:
        """Return ``loss``, the weighted sum, and every named loss before weighting.

        A loss whose name begins with ``_`` is only watched. Two objectives may not use one name.
        """
        context = Context(
            self.model, batch, step=moment.step, epoch=moment.epoch + moment.through, generator=self.generator
        )
        shown: dict[str, Tensor] = {}
        total: Tensor | None = None
        for name, objective in self.objectives.items():
            losses: dict[str, Tensor] = objective(context)
            for part, value in losses.items():
                watched = part.startswith("_")
                label = part.lstrip("_")
                if label in shown or label == "loss":
                    label = f"{name}.{label}"
                shown[label] = value.detach() if watched else value
                if not watched:
                    total = self.weights[name] * value if total is None else total + self.weights[name] * value
        if total is None:
            raise BadRecipeError(f"the objectives {', '.join(self.objectives)} give no loss to train on")
        return {"loss": total, **shown}


def input_sizes(store: RegionStore, vocabulary: Vocabulary) -> InputSizes:
    """Return the widths that regions and vocabulary dictate."""
    widths = store.header.widths
    return InputSizes(
        words=len(vocabulary),
        features=store.width("features"),
        classes=store.width("class_probs"),
        region_words=store.width("word_probs"),
        global_features=store.width("global_features"),
        feature_map=int(widths["feature_map"][-1]) if "feature_map" in widths else 0,
    )


def build_model(recipe: Recipe, data: TrainingData) -> tuple[nn.Module, ModelConfig]:
    """Return the model of a recipe, and what its folder will say of it."""
    store = data.store
    sizes = input_sizes(store, data.vocabulary)
    frames = _frames(data)
    settings = {**store.header.settings, **({"frames": frames} if frames > 1 else {})}
    config = ModelConfig(
        recipe=recipe,
        fingerprint=store.fingerprint,
        extractor=settings,
        sizes=asdict(sizes),
        classes=data.classes,
    )
    model = _model(config, data.vocabulary, store.class_names)
    start = getattr(model, "start", None)
    if start is not None:  # what a new model takes over from others; a loaded one carries it in its own weights
        start()
    return model, config


def _frames(data: TrainingData) -> int:
    """Return how many frames the first training example has: 1 for a photo. Who answers about clips wants to know."""
    if not data.train.examples:
        return 1
    frame = data.train.source.regions([data.train.examples[0].id]).frame
    return int(frame.max()) + 1 if frame.numel() else 1


def load_model(folder: Path) -> tuple[nn.Module, Vocabulary, ModelConfig]:
    """Return the model of a folder, ready to answer."""
    config = load_config(folder)
    check_sizes({"model": config.recipe.model.options, **config.sizes}, tensor_shapes(folder / WEIGHTS), str(folder))
    weights = load_weights(folder, config)
    vocabulary = Vocabulary.load(folder / VOCABULARY)
    if config.sizes.get("words") != len(vocabulary):
        raise BadFileError(f"{folder} was made for {config.sizes.get('words')} words, not {len(vocabulary)}: damaged")
    try:
        model = _model(config, vocabulary)
    except (RuntimeError, ArithmeticError, TypeError, AssertionError, MemoryError) as error:
        reason = " ".join(str(error).split())[:300]
        raise BadFileError(f"no model can be built from the recipe in {folder}: {reason}") from error
    fill(model, weights, folder)
    return model.eval(), vocabulary, config


def _model(config: ModelConfig, vocabulary: Vocabulary, detector_classes: tuple[str, ...] = ()) -> nn.Module:
    component = config.recipe.model
    try:
        sizes = InputSizes(**config.sizes)
    except TypeError as error:
        raise BadFileError(f"the model's sizes do not fit this version: {error}") from error
    model: nn.Module = build(
        "model",
        component.kind,
        component.options,
        "model",
        sizes=sizes,
        vocabulary=vocabulary,
        classes=config.classes,
        detector_classes=detector_classes,
    )
    return model


def _grounder_loader(model: nn.Module, data: TrainingData) -> Callable[[str], Grounder]:
    """Return how an objective of this stage gets a teacher or a judge by name."""

    def load(name: str) -> Grounder:
        from deixis.models.names import load_grounder  # models are built here, so they are loaded through here

        device = same_device(model)
        return load_grounder(name, fingerprint=data.store.fingerprint, vocabulary=data.vocabulary, device=device)

    return load


def _grounder_digest(name: str) -> str:
    from deixis.models.names import find_model

    return str(load_config(find_model(name, part="grounder")).files[WEIGHTS]["sha256"])


def build_stage(
    recipe: StageRecipe,
    model: nn.Module,
    data: TrainingData,
    generator: torch.Generator | None = None,
    tell: Callable[[str, int, int], None] | None = None,
) -> Stage:
    """Return the stage of a recipe around a model; ``tell`` hears of work done before the first step."""
    known: dict[str, Any] = {
        "model": model,
        "captioner": model,
        "vocabulary": data.vocabulary,
        "classes": data.classes,
        "data": data,
        "sizes": input_sizes(data.store, data.vocabulary),
        "load_grounder": _grounder_loader(model, data),
        "grounder_digest": _grounder_digest,
        "tell": tell,
    }
    objectives = {
        objective.name: build(
            "objective", objective.kind, objective.options, f"stages.{recipe.name}.objectives.{objective.name}", **known
        )
        for objective in recipe.objectives
    }
    for name in objectives:
        if not name.isidentifier():
            raise unknown_key(name, [objective.kind for objective in recipe.objectives], "stages", "objective name")
    return Stage(model, objectives, {o.name: o.weight for o in recipe.objectives}, generator)
