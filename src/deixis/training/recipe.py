"""A recipe: everything that decides what a training run does, as frozen dataclasses.

The YAML form, its overlays and overrides are read in ``recipe_files.py``; this file says what may stand in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from deixis.component import Component
from deixis.strict import to_dataclass, to_plain, to_type

Precision = Literal["float32", "bf16", "auto"]


@dataclass(frozen=True, slots=True)
class About:
    """Where a recipe comes from, for ``deixis recipes``."""

    title: str
    paper: str = ""
    table: str = ""
    row: str = ""
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """A dataset folder, the store of its regions, and the splits to take (joined with +, such as ``train+val``)."""

    dataset: str
    store: str
    split: str = "train"
    reader: str | None = None
    """Name of the dataset's form; found out from the folder when not given."""
    limit: int | None = None
    """Only the first so many images: for trying things out."""


@dataclass(frozen=True, slots=True)
class DataRecipe:
    """What is trained on and validated with. Folders are looked up by :func:`deixis.data.locations.find`."""

    dataset: str
    store: str
    """A region store, ``auto`` to find the regions now and keep them, or ``none`` to train on captions alone."""
    train: str = "train"
    validation: str | None = "val"
    validation_from: Source | None = None
    """Validation images of another dataset, for training on COCO and choosing on Flickr; its own split counts."""
    reader: str | None = None
    limit: int | None = None
    more: tuple[Source, ...] = ()
    """Further sources of training images."""
    regions: int = 36
    """Regions per frame; the whole frame comes on top, unless ``whole_image`` is off."""
    whole_image: bool = True
    """Whether the whole frame is a region that can be looked at. No paper has it; stores always hold it."""
    feature_width: int | None = None
    """How many numbers describe a region in the files the recipe was written for; other regions are refused."""
    captions: int = 5
    """Captions per image and epoch; an image with more gives others in each epoch."""
    length: int = 20
    """Words after which a caption is cut."""
    min_count: int = 5
    """Training captions must use a word so often for it to enter the vocabulary."""
    vocabulary: str | None = None
    """A ready vocabulary.json, in place of counting the training captions."""
    new_words: int | None = None
    """Add to a ready vocabulary the words that training captions use so often; None: add none."""
    parse: bool = True
    """Tag the words of captions (noun, verb, adjective); needs the extra ``train`` or a cached parse."""
    supervision: bool = False
    """Let the model see the human boxes of the training phrases. Off everywhere but in supervised bounds."""
    classes: str | None = None
    """File with the object classes of annotated phrases, one a line, for region classification."""
    maps: bool = False
    """Read feature maps too, for attention over them."""
    word_probs: bool = False
    """Read the regions' word distributions too."""


@dataclass(frozen=True, slots=True)
class ObjectiveRecipe:
    """One weighted objective of a stage. ``name`` tells two of one kind apart."""

    kind: str
    weight: float = 1.0
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, data: object, where: str) -> Self:
        """Read ``{kind: …, weight: …, option: …}``, or the bare name of a kind."""
        component = Component.read(data, where)
        options = dict(component.options)
        weight = to_type(float, options.pop("weight", 1.0), f"{where}.weight")
        name = to_type(str, options.pop("name", component.kind.rpartition(":")[2]), f"{where}.name")
        return cls(component.kind, weight, name, options)

    def plain(self) -> dict[str, Any]:
        """Return the flat form."""
        return {"kind": self.kind, "name": self.name, "weight": self.weight, **self.options}


@dataclass(frozen=True, slots=True)
class OptimizerRecipe:
    """Adam and its kin."""

    kind: Literal["adam", "adamw", "sgd"] = "adam"
    lr: float = 5e-4
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0


@dataclass(frozen=True, slots=True)
class ScheduleRecipe:
    """How the learning rate moves; see ``schedules.py``."""

    kind: Literal["constant", "step", "milestones", "plateau", "cosine"] = "constant"
    every: int = 3
    """step: epochs between two cuts."""
    begun: int = 0
    """step: epochs since the last cut when the stage begins, for one that goes on with another's schedule."""
    at: tuple[int, ...] = ()
    """milestones: the optimizer steps after which the rate is cut."""
    factor: float = 0.8
    """step, milestones and plateau: what a cut multiplies by."""
    patience: int = 10
    """plateau: validations without a gain before a cut."""
    floor: float = 0.0
    """The rate never falls below this."""
    warmup: int = 0
    """Optimizer steps over which the rate rises from 0."""

    def __post_init__(self) -> None:
        if (self.kind == "milestones") != bool(self.at):
            raise ValueError("'at' goes with kind milestones: it lists the steps after which the rate is cut")
        if list(self.at) != sorted({*self.at}) or min(self.at, default=1) < 1:
            raise ValueError(f"at should list growing numbers of steps from 1 on, got {list(self.at)}")


@dataclass(frozen=True, slots=True)
class ClipRecipe:
    """Gradient clipping: by the norm over all parameters, or each value to +-``at``."""

    by: Literal["norm", "value", "none"] = "norm"
    at: float = 5.0


@dataclass(frozen=True, slots=True)
class StageRecipe:
    """One stage: objectives with their optimizer, schedule and end. Stages follow each other on one model."""

    name: str
    epochs: int
    objectives: tuple[ObjectiveRecipe, ...]
    batch: int = 32
    """Images per optimizer step, over all processes and accumulated parts."""
    accumulate: int = 1
    """In how many parts a batch goes through the model."""
    optimizer: OptimizerRecipe = OptimizerRecipe()
    schedule: ScheduleRecipe = ScheduleRecipe()
    clip: ClipRecipe = ClipRecipe()
    patience: int | None = None
    """Validations without a gain after which the stage ends; None: never."""
    start: Literal["last", "best"] = "best"
    """Which weights of the stage before to go on from."""
    set: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of the model to set for this stage, such as the number of attention branches in use."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1 or self.accumulate < 1:
            raise ValueError("epochs, batch and accumulate should be at least 1")
        if not self.objectives:
            raise ValueError("a stage needs at least one objective")
        names = [objective.name for objective in self.objectives]
        if len(set(names)) < len(names):
            raise ValueError(f"two objectives are called {max(names, key=names.count)!r}: give one another 'name'")


@dataclass(frozen=True, slots=True)
class ValidationRecipe:
    """What is measured on the validation split during training, and when."""

    kind: str = "captions"
    """Which validation of the registry to run."""
    metric: str = "cider"
    """What decides the best checkpoint, plateaus and early stopping; larger is better."""
    protocol: Literal["any-box", "merged-box"] = "any-box"
    """phrases: any box of a phrase may be hit (InfoGround), or all of them are one (ReIR)."""
    every: int = 1
    """Epochs between two validations."""
    samples: int = 4
    """Images shown in the report at each validation."""
    batch: int = 64
    first: bool = False
    """Measure before the first step too, so that a run that goes on from a model never ends with a worse one."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A whole run. ``size`` is the switch between the paper's settings and those for two CPU cores."""

    about: About
    data: DataRecipe
    model: Component
    stages: tuple[StageRecipe, ...]
    size: str = "paper"
    start_from: str | None = None
    """A run or model folder whose weights and words the run begins with (``start.py``); None: random weights."""
    new_regions: bool = False
    """The model of ``start_from`` looked at regions of another extractor: its layers that read them begin afresh."""
    begin_at: str | None = None
    """Name of the first stage to train; those before it are left out, as with ``start_from`` a run that did them."""
    end_at: str | None = None
    """Name of the last stage to train."""
    seed: int = 1
    precision: Precision = "float32"
    """``auto`` is bf16 where the processor computes in it, else float32; a run keeps what it began with."""
    validation: ValidationRecipe = ValidationRecipe()
    save_every: int | None = None
    """Optimizer steps between two checkpoints, beside the one at the end of each epoch."""
    log_every: int = 10
    """Optimizer steps between two lines in ``metrics.jsonl``."""

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        if not names:
            raise ValueError("a recipe needs at least one stage")
        if len(set(names)) < len(names):
            raise ValueError(f"two stages are called {max(names, key=names.count)!r}")
        for key, name in (("begin_at", self.begin_at), ("end_at", self.end_at)):
            if name is not None and name not in names:
                raise ValueError(f"{key} names no stage: {name!r} is none of {', '.join(names)}")
        if not self.planned:
            raise ValueError(f"begin_at {self.begin_at} comes after end_at {self.end_at}: no stage is left to train")

    @property
    def planned(self) -> range:
        """The numbers of the stages to train, from ``begin_at`` to ``end_at``."""
        names = [stage.name for stage in self.stages]
        first = 0 if self.begin_at is None else names.index(self.begin_at)
        return range(first, len(names) if self.end_at is None else names.index(self.end_at) + 1)

    @classmethod
    def from_plain(cls, data: object, where: str = "recipe") -> Self:
        """Build a recipe from the plain data of a resolved YAML or of ``config.json``."""
        return to_dataclass(cls, data, where)

    def plain(self) -> dict[str, Any]:
        """Return the recipe as plain data; :meth:`from_plain` gives it back."""
        return {name: to_plain(getattr(self, name)) for name in self.__dataclass_fields__}

    def differences(self, other: Recipe) -> list[str]:
        """Return the dotted keys in which two recipes differ."""
        return sorted(_differences(self.plain(), other.plain(), ""))


def _differences(a: Any, b: Any, where: str) -> list[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        return [d for key in {*a, *b} for d in _differences(a.get(key), b.get(key), f"{where}.{key}".lstrip("."))]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [d for at, (x, y) in enumerate(zip(a, b, strict=True)) for d in _differences(x, y, f"{where}.{at}")]
    return [] if json.dumps(a) == json.dumps(b) else [where]
