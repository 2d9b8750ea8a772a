"""The registry: which names a recipe may use for models, objectives and validations, and how they are built.

Options in the YAML are the keyword parameters of the class, or the fields of the dataclass it takes as ``config`` or
``options``; what the run knows (vocabulary, sizes, model …) is passed to parameters of that name. A wrong option names
the nearest right one. Other packages add their own with :func:`register`.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_type_hints

from deixis.errors import BadRecipeError
from deixis.models.strict import to_dataclass, to_type, unknown_key

Kind = Literal["model", "objective", "validation"]

REGISTRY: dict[Kind, dict[str, str]] = {
    "model": {
        "captioner": "deixis.captioning.model.captioner:Captioner",
        "scan": "deixis.grounding.scan:Scan",
        "infoground": "deixis.grounding.infoground:InfoGround",
        "reir": "deixis.grounding.reir.model:Reir",
        "lite": "deixis.grounding.lite.model:LiteGrounder",
        "maf": "deixis.grounding.maf:Maf",
        "masked_language_model": "deixis.text.masked_model:MaskedLanguageModel",
    },
    "objective": {
        "cross_entropy": "deixis.objectives.cross_entropy:CrossEntropy",
        "supervision": "deixis.objectives.supervision:Supervision",
        "region_classification": "deixis.objectives.region_classification:RegionClassification",
        "grounding": "deixis.objectives.gvd_grounding:Grounding",
        "cyclical": "deixis.objectives.cyclical:Cyclical",
        "attention_consistency": "deixis.objectives.attention_consistency:AttentionConsistency",
        "distillation": "deixis.objectives.distillation:Distillation",
        "self_critical": "deixis.objectives.self_critical:SelfCritical",
        "matching": "deixis.objectives.matching:Matching",
        "image_contrast": "deixis.objectives.info_nce:ImageContrast",
        "language_contrast": "deixis.objectives.info_nce:LanguageContrast",
        "reconstruction": "deixis.objectives.reconstruction:Reconstruction",
        "visual_consistency": "deixis.objectives.visual_consistency:VisualConsistency",
        "phrase_ranking": "deixis.objectives.phrase_ranking:PhraseRanking",
        "self_taught": "deixis.objectives.self_taught:SelfTaught",
        "relation_classification": "deixis.objectives.relation_classification:RelationClassification",
        "evidence": "deixis.objectives.evidence:Evidence",
        "phrase_contrast": "deixis.objectives.phrase_contrast:PhraseContrast",
        "paraphrase_consistency": "deixis.objectives.paraphrase:ParaphraseConsistency",
        "teaching": "deixis.objectives.teaching:Teaching",
        "masked_words": "deixis.objectives.masked_words:MaskedWords",
    },
    "validation": {
        "captions": "deixis.training.validate:CaptionValidation",
        "phrases": "deixis.training.phrase_validation:PhraseValidation",
        "retrieval": "deixis.training.retrieval_validation:RetrievalValidation",
    },
}
"""Names and where they live (``module:attribute``); imported when a recipe uses them."""


def register(kind: Kind, name: str, where: str) -> None:
    """Add a name, such as ``register("objective", "mine", "my_package.mine:MyObjective")``."""
    REGISTRY[kind][name] = where


def find_class(kind: Kind, name: str, where: str) -> Any:
    """Return what a name stands for."""
    known = REGISTRY[kind]
    if name not in known:
        raise unknown_key(name, known, where, kind)
    module, _, attribute = known[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def build(kind: Kind, name: str, options: Mapping[str, Any], where: str, **known: Any) -> Any:
    """Build something a recipe names from its options and from what the run knows."""
    target = find_class(kind, name, where)
    values = read_options(target, options, where, known)
    try:
        return target(**values)
    except ValueError as error:
        raise BadRecipeError(f"{where} ({name}): {error}") from error


def read_options(target: Any, options: Mapping[str, Any], where: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call of ``target``: its options checked, and those of ``known`` that it asks for."""
    parameters = inspect.signature(target).parameters
    hints = get_type_hints(target.__init__ if inspect.isclass(target) else target)
    values = {name: known[name] for name in parameters if name in known}
    for name in ("config", "options"):
        config = _dataclass_in(hints.get(name)) if name in parameters else None
        if config is not None:
            values[name] = to_dataclass(config, options, where)
            return values
    free = {
        name: parameter
        for name, parameter in parameters.items()
        if name not in known and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    for key, value in options.items():
        if key not in free:
            raise unknown_key(key, free, where, "option")
        values[key] = to_type(hints.get(key, Any), value, f"{where}.{key}")
    for name, parameter in free.items():
        if parameter.default is parameter.empty and name not in values:
            raise BadRecipeError(f"{where} lacks '{name}'")
    return values


def _dataclass_in(hint: Any) -> type[Any] | None:
    """Return the dataclass a hint names, also where None is allowed."""
    for option in (hint, *get_args(hint)):
        if dataclasses.is_dataclass(option) and isinstance(option, type):
            return option
    return None
