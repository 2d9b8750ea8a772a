"""A stage: one model and its weighted objectives in one module, the only one that accelerate prepares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from deixis.data.batch import Batch
from deixis.data.sizes import InputSizes
from deixis.errors import BadRecipeError, DeixisError
from deixis.interfaces import Grounder, Model, device_of
from deixis.models.build import make_model
from deixis.models.checkpoint import WEIGHTS, ModelConfig, load_config
from deixis.models.names import find_model, load_grounder
from deixis.objectives.base import Context, Objective
from deixis.registry import build
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


def build_model(recipe: Recipe, data: TrainingData) -> tuple[Model, ModelConfig]:
    """Return the model of a recipe, and what its folder will say of it."""
    store = data.store
    sizes = InputSizes.of_store(store, data.vocabulary)
    frames = _frames(data)
    settings = {**store.header.settings, **({"frames": frames} if frames > 1 else {})}
    config = ModelConfig(
        recipe=recipe.plain(),
        fingerprint=store.fingerprint,
        extractor=settings,
        sizes=asdict(sizes),
        classes=data.classes,
    )
    model = make_model(config, data.vocabulary, store.class_names)
    model.start()
    return model, config


def _frames(data: TrainingData) -> int:
    """Return how many frames the first training example has: 1 for a photo. Who answers about clips wants to know."""
    if not data.train.examples:
        return 1
    frame = data.train.source.regions([data.train.examples[0].id]).frame
    return int(frame.max()) + 1 if frame.numel() else 1


def _grounder_loader(model: nn.Module, data: TrainingData) -> Callable[[str], Grounder]:
    """Return how an objective of this stage gets a teacher or a judge by name."""

    def load(name: str) -> Grounder:
        device = device_of(model)
        return load_grounder(name, fingerprint=data.store.fingerprint, vocabulary=data.vocabulary, device=device)

    return load


def _grounder_digest(name: str) -> str:
    return str(load_config(find_model(name, part="grounder")).files[WEIGHTS]["sha256"])


def _require_words(objective: Objective, data: TrainingData, where: str) -> None:
    """Refuse an objective whose words the captions of this dataset turn out not to have."""
    captions = (caption for example in data.train.examples for caption in example.captions)
    if "phrases" in objective.needs and not any(caption.phrases for caption in captions):
        raise DeixisError(f"{where} learns from phrases, and no training caption has one: set data.parse to true")
    if "tags" in objective.needs and not any(data.vocabulary.is_noun):
        raise DeixisError(f"{where} learns from nouns, and no word of the vocabulary is tagged: set data.parse to true")


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
        "sizes": InputSizes.of_store(data.store, data.vocabulary),
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
    for name, objective in objectives.items():
        _require_words(objective, data, f"stages.{recipe.name}.objectives.{name}")
    return Stage(model, objectives, {o.name: o.weight for o in recipe.objectives}, generator)
